// SPDX-License-Identifier: MIT
// What most examples need beside their subject: a world with a ctx, and memory.
#pragma once
#include <climits>
#include <cstdint>
#include <new>
#include <vector>

#include "check.hpp"

// A world, one ctx, and a word that kernels leave their status in.
struct session {
  explicit session(int least = 1, int most = INT_MAX, xio_route_t route = XIO_ROUTE_AUTO) {
    open_standard_streams();
    check(xio_init(nullptr, &world), "xio_init");
    me = xio_my_pe(world);
    n = xio_n_pes(world);
    if (n < least || n > most)
      leave(2, "%d PEs, but this needs %d%s: start it with mpirun -np or xiorun -n", n, least,
            n < least ? "" : " only");
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.route = route;
    check(xio_ctx_create(world, &attr, &ctx), "xio_ctx_create");
    status = on_host<int>(1);
  }
  session& operator=(session&&) = delete;

  template <class T>
  T* symmetric(size_t count) const {
    void* block = nullptr;
    check(xio_calloc(world, count, sizeof(T), &block), "xio_calloc (a larger XIO_HEAP_SIZE, or smaller arguments)");
    return static_cast<T*>(block);
  }
  // Memory of the host that kernels reach, zeroed.
  template <class T>
  static T* on_host(size_t count) {
    void* block = nullptr;
    check(hipHostMalloc(&block, count * sizeof(T), 0), "hipHostMalloc");
    for (size_t i = 0; i < count; ++i) new (static_cast<T*>(block) + i) T{};
    return static_cast<T*>(block);
  }
  template <class T>
  static void write(T* to, const std::vector<T>& from) {
    check(hipMemcpy(to, from.data(), from.size() * sizeof(T), hipMemcpyHostToDevice), "hipMemcpy");
  }
  template <class T>
  static std::vector<T> read(const T* from, size_t count) {
    std::vector<T> out(count);
    check(hipMemcpy(out.data(), from, count * sizeof(T), hipMemcpyDeviceToHost), "hipMemcpy");
    return out;
  }
  void barrier() const { check(xio_host_barrier(world), "xio_host_barrier"); }
  // After a launch: the kernel has ended, and well.
  void wait(const char* kernel) const {
    check(hipDeviceSynchronize(), kernel);
    check(static_cast<xio_status_t>(*status), kernel);
  }
  // Returns the result of main(). Collective, for no PE may leave while others still access its memory.
  int end(uint64_t wrong) {
    barrier();
    (void)hipHostFree(status);
    check(xio_finalize(world), "xio_finalize");
    return ended(wrong == 0 ? 0 : 1);
  }

  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  int me = -1, n = 0;
  int* status = nullptr;
};
