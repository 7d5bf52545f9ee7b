// SPDX-License-Identifier: MIT
// Host side of NVMe: controllers and their I/O queues.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "base/options.hpp"
#include "base/payload.hpp"
#include "model/machine.hpp"
#include "xio/device/view.hpp"
#include "xio/xio.h"

namespace xio::nvme {

class controller {
 public:
  virtual ~controller() = default;  // clean shutdown
  virtual const char* backend() const = 0;
  // Filled but for `queues` and `slot`.
  virtual dev::storage_view view() const = 0;
  virtual dev::ring_view queue_view(std::uint32_t queue) const = 0;  // filled but for `index`
  virtual std::uint32_t queue_count() const = 0;
  // Memory that commands may name; answers its bus address, contiguous over `bytes`.
  virtual std::uint64_t map(void* base, std::size_t bytes) = 0;
  virtual void unmap(void* base) = 0;
};

// name: "file:PATH".
std::unique_ptr<controller> open(const std::string& name, const xio_storage_attr_t& attr, const options& o,
                                 model::machine& machine, const payload_agent& payload);

}  // namespace xio::nvme
