// SPDX-License-Identifier: MIT
// Both ends' memory is mapped in this process: ops are copies and atomics.
#pragma once
#include <memory>

#include "base/payload.hpp"
#include "model/nic/executor.hpp"
#include "model/nic/keys.hpp"

namespace xio::model::rdma {

class shm_executor final : public executor {
 public:
  // far: what the peer has opened, by its own keys and addresses.
  shm_executor(const payload_agent& payload, const key_table& local, std::shared_ptr<const key_table> far)
      : payload_(payload), local_(local), far_(std::move(far)) {}

  step advance(const op& o, progress& p, std::uint64_t budget, failure* why) override;

 private:
  failure check(const op& o) const;
  failure near(const span_ref& s, std::uint32_t wanted, unsigned char** place) const;
  failure distant(const op& o, std::uint32_t wanted, unsigned char** place) const;
  failure write_inline(const op& o);
  failure move(const op& o, progress& p, std::uint64_t budget);
  failure change(const op& o);

  const payload_agent& payload_;
  const key_table& local_;
  std::shared_ptr<const key_table> far_;
};

}  // namespace xio::model::rdma
