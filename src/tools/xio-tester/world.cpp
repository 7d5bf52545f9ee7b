// SPDX-License-Identifier: MIT
#include "tools/xio-tester/world.hpp"

#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/options.hpp"

namespace xio::tester {

void must(xio_status_t status) {
  if (status != XIO_OK) throw error(status, xio_last_error());
}

world::world(const world_settings& s) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = s.bootstrap;
  attr.heap_bytes = s.heap_bytes;
  if (s.tcp_size != 0) {
    attr.tcp_root = s.tcp_root.c_str();
    attr.tcp_rank = s.tcp_rank;
    attr.tcp_size = s.tcp_size;
  }
  must(xio_init(&attr, &world_));
  try {
    xio_ctx_attr_t how = XIO_CTX_ATTR_INIT;
    how.route = s.route;
    how.ring_depth = s.ring_depth;
    must(xio_ctx_create(world_, &how, &ctx_));
  } catch (...) {
    xio_finalize(world_);
    throw;
  }
}

world::~world() { xio_finalize(world_); }

void* world::allocate(std::size_t bytes) const {
  void* block = nullptr;
  must(xio_calloc(world_, 1, bytes, &block));
  return block;
}

registered_memory::registered_memory(const world& w, void* base, std::size_t bytes) : world_(w), base_(base) {
  must(xio_mem_register(w.get(), base, bytes));
}

registered_memory::~registered_memory() { xio_mem_unregister(world_.get(), base_); }

void set_if_unset(const char* variable, const std::string& value) {
  if (set_variable(variable) == nullptr) setenv(variable, value.c_str(), 1);
}

void use_memory_mode(const shared_settings& shared, int mask) {
  const std::string mode = std::to_string(shared.memory_mode & mask);
  if (shared.memory_mode_given)
    setenv("XIO_MEMORY_MODE", mode.c_str(), 1);
  else
    set_if_unset("XIO_MEMORY_MODE", mode);
  // The data lies in the symmetric heap, which is of one kind: 8 in the mode is GPU memory.
  const char* wanted = set_variable("XIO_MEMORY_MODE");
  if (wanted != nullptr && std::strcmp(wanted, "auto") != 0)
    set_if_unset("XIO_HEAP_KIND", (std::strtoul(wanted, nullptr, 0) & 8) != 0 ? "device" : "host");
}

void use_bridge(const shared_settings& shared) {
  if (!shared.mmio_bridge) return;
  std::size_t count = 0;
  const option_row* rows = option_rows(&count);
  for (std::size_t i = 0; i < count; ++i)
    if (std::strcmp(rows[i].variable, "XIO_NVME_DOORBELL") == 0 && std::strstr(rows[i].limits, "bridge") != nullptr) {
      setenv("XIO_NVME_DOORBELL", "bridge", 1);
      return;
    }
  fail(XIO_ERR_UNSUPPORTED, "--pci-mmio-bridge: this build sends no doorbells through a bridge; leave the flag out");
}

gpu::place place_of_data(const shared_settings& shared) {
  return (shared.memory_mode & 8) != 0 ? gpu::place::device : gpu::place::shared;
}

}  // namespace xio::tester
