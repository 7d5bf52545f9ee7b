// SPDX-License-Identifier: MIT
#include "tools/xio-tester/world.hpp"

#include <cstdlib>

#include "base/error.hpp"

namespace xio::tester {

void must(xio_status_t status) {
  if (status != XIO_OK) throw error(status, xio_last_error());
}

world::world(const world_settings& s) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = s.bootstrap;
  attr.heap_bytes = s.heap_bytes;
  const auto options = s.options.list();
  attr.options = options.data();
  attr.option_count = options.size();
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

void world_options::set(const std::string& variable, const std::string& value) { all_.push_back({variable, value}); }

void world_options::set_if_unset(const std::string& variable, const std::string& value) {
  if (find(variable) == nullptr) set(variable, value);
}

const char* world_options::find(const std::string& variable) const {
  for (auto at = all_.rbegin(); at != all_.rend(); ++at)
    if (at->variable == variable) return at->value.c_str();
  return set_variable(variable.c_str());
}

std::vector<xio_option_t> world_options::list() const {
  std::vector<xio_option_t> out;
  for (const setting& one : all_) out.push_back({one.variable.c_str(), one.value.c_str()});
  return out;
}

void use_memory_mode(const shared_settings& shared, int mask, world_options& options) {
  const std::string mode = std::to_string(shared.memory_mode & mask);
  if (shared.memory_mode_given)
    options.set("XIO_MEMORY_MODE", mode);
  else
    options.set_if_unset("XIO_MEMORY_MODE", mode);
  // The data lies in the symmetric heap, which is of one kind: 8 in the mode is GPU memory.
  const char* wanted = options.find("XIO_MEMORY_MODE");
  if (wanted != nullptr && std::strcmp(wanted, "auto") != 0)
    options.set_if_unset("XIO_HEAP_KIND", (std::strtoul(wanted, nullptr, 0) & 8) != 0 ? "device" : "host");
}

gpu::place place_of_data(const shared_settings& shared) {
  return (shared.memory_mode & 8) != 0 ? gpu::place::device : gpu::place::shared;
}

}  // namespace xio::tester
