// SPDX-License-Identifier: MIT
#include "memory/mode.hpp"
#include "base/error.hpp"

namespace xio::memory {
namespace {

const char* name_of(part p) {
  switch (p) {
    case part::submission: return "submission queues";
    case part::completion: return "completions";
    case part::doorbell: return "doorbell words";
    case part::data: return "data";
  }
  return "";
}

}  // namespace

gpu::place mode::place(part p, const char* who, const ability& can) const {
  if (!bits_) return can.own;
  const auto bit = static_cast<unsigned>(p);
  const bool device = (*bits_ & bit) != 0;
  const gpu::place asked = device ? gpu::place::device : gpu::place::shared;
  if (asked == can.own || can.why_not == nullptr) return asked;
  fail(
      XIO_ERR_UNSUPPORTED,
      "XIO_MEMORY_MODE={} puts {} into {} memory, and with {} that cannot be: {}; {} {} in the mode, or set it to auto",
      *bits_, name_of(p), device ? "GPU" : "host", who, can.why_not, device ? "leave out" : "add", bit);
}

ring_places place_rings(option::AUTO_UINT bits, const char* who, const ability& submission, const ability& completion,
                        const ability& doorbell) {
  const mode m(bits);
  return {m.place(part::submission, who, submission), m.place(part::completion, who, completion),
          m.place(part::doorbell, who, doorbell)};
}

ability of_software_device() {
  return {gpu::place::shared,
          gpu::host_reads_device_memory() ? nullptr : "a software device reads and writes it as host memory"};
}

}  // namespace xio::memory
