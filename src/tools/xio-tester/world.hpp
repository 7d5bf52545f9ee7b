// SPDX-License-Identifier: MIT
// The world of a test, with one context, and the options that it is made with.
#pragma once
#include "base/options.hpp"
#include "gpu/gpu.hpp"
#include "tools/xio-tester/settings.hpp"
#include "xio/xio.h"

namespace xio::tester {

// Throws the library's sentence.
void must(xio_status_t status);

// Options of a world that flags ask for; they go before the environment.
class world_options {
 public:
  void set(const std::string& variable, const std::string& value);
  // Where neither a flag nor the environment says anything.
  void set_if_unset(const std::string& variable, const std::string& value);
  // Returns the value that the world will have, or null for its default.
  const char* find(const std::string& variable) const;
  // As xio_init takes them, as long as this is not changed.
  std::vector<xio_option_t> list() const;

 private:
  std::vector<setting> all_;
};

struct world_settings {
  const char* bootstrap = "local";
  std::size_t heap_bytes = std::size_t{4} << 20;
  xio_route_t route = XIO_ROUTE_AUTO;
  std::uint32_t ring_depth = 0;
  world_options options;
  std::string tcp_root;  // with bootstrap "tcp"
  int tcp_rank = 0, tcp_size = 0;
};

class world {
 public:
  explicit world(const world_settings& settings);
  ~world();
  world& operator=(world&&) = delete;

  xio_world_t* get() const { return world_; }
  xio_ctx_t ctx() const { return ctx_; }
  int my_pe() const { return xio_my_pe(world_); }
  int n_pes() const { return xio_n_pes(world_); }
  // Symmetric memory that lives as long as the world.
  void* allocate(std::size_t bytes) const;

 private:
  xio_world_t* world_ = nullptr;
  xio_ctx_t ctx_{};
};

class registered_memory {
 public:
  registered_memory(const world& w, void* base, std::size_t bytes);
  ~registered_memory();
  registered_memory& operator=(registered_memory&&) = delete;

 private:
  const world& world_;
  void* base_;
};

// XIO_MEMORY_MODE by --memory-mode, of which `mask` means something here.
void use_memory_mode(const shared_settings& shared, int mask, world_options& options);

gpu::place place_of_data(const shared_settings& shared);

}  // namespace xio::tester
