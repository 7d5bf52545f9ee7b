// SPDX-License-Identifier: MIT
// This process as a PE of a world, for tools that need one. Its destructor closes it.
#pragma once
#include <cstddef>
#include <string>

#include "xio/xio.h"

namespace xio::tools {

// Throws what the library refused, with its sentence.
void checked(xio_status_t status);

class member {
 public:
  explicit member(std::size_t heap_bytes = 0);
  ~member();
  member& operator=(member&&) = delete;

  xio_world_t* world() const { return world_; }
  xio_ctx_t ctx() const { return ctx_; }
  int me() const { return xio_my_pe(world_); }
  int size() const { return xio_n_pes(world_); }
  std::string route(int pe, std::size_t bytes) const;
  void barrier() const { checked(xio_host_barrier(world_)); }
  template <class T>
  T* symmetric(std::size_t count) const {
    void* block = nullptr;
    checked(xio_calloc(world_, count, sizeof(T), &block));
    return static_cast<T*>(block);
  }
  // The sentence of the ctx's last failure, behind ": ", or "".
  std::string failure() const;

 private:
  xio_world_t* world_ = nullptr;
  xio_ctx_t ctx_{};
};

}  // namespace xio::tools
