// SPDX-License-Identifier: MIT
// The symmetric heap on the host platform. All kinds are the same: kernels are threads of the process.
#include <unistd.h>

#include "base/error.hpp"
#include "gpu/heap_file.hpp"

namespace xio::gpu {

std::unique_ptr<heap> make_heap(std::size_t bytes, heap_kind, bool) {
  if (bytes == 0) fail(XIO_ERR_CONFIG, "a heap of 0 bytes; set XIO_HEAP_SIZE to what the program allocates");
  return make_file_heap(bytes);
}

std::unique_ptr<mapping> map_heap(const std::vector<std::byte>& handle, std::size_t bytes, heap_kind) {
  return map_file_heap(handle, bytes);
}

memory_report report_memory(purpose, place) {
  return {"pages", "kernels run on the host's processors, whose caches are coherent"};
}

std::string heap_atomics_obstacle(heap_kind, bool) { return ""; }

std::string machine_identity() {
  const std::string boot = boot_identity();
  char space[64] = {};
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = '?';
  return fmt::format("{} {} {}", boot, space, getuid());
}

}  // namespace xio::gpu
