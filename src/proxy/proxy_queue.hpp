// SPDX-License-Identifier: MIT
// The neutral dialect of include/xio/wire/proxy.hpp: entries whose words are valid each by itself, a count for
// completion.
#pragma once
#include "proxy/ring_memory.hpp"
#include "proxy/wire_queue.hpp"
#include "xio/wire/proxy.hpp"

namespace xio::proxy {

// Outlives the queue.
struct proxy_memory {
  const std::uint64_t* slots;  // depth entries of 16 words
  std::uint32_t depth_log2;
  std::uint64_t* completion;  // count and failure
  std::uint64_t start;        // ticket of the first entry
  ring_memory entries = {}, completions = {};
};

class proxy_queue final : public wire_queue {
 public:
  proxy_queue(const proxy_memory& memory, std::uint64_t max_message);

  op_error poll_doorbells() override;
  bool waiting() const override { return next_ != producer_index_; }
  op_error fetch(op& out) override;
  void complete(const receipt& r) override;
  void complete_in_error(const receipt& r, op_error f) override;
  void drop(const receipt&) override {}
  void flush() override { next_ = producer_index_; }

 private:
  const std::uint64_t* slot(std::uint64_t ticket) const;
  op_error decode_copy(op& out) const;
  op_error decode_atomic(op& out) const;

  const proxy_memory memory_;
  const std::uint64_t max_message_;
  std::uint64_t producer_index_;                          // entries below are there
  std::uint64_t next_;                                    // the next entry to take
  std::uint32_t entry_[wire::proxy::k_entry_words] = {};  // the data of the one that is taken
};

}  // namespace xio::proxy
