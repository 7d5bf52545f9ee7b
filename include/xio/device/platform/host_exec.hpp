// SPDX-License-Identifier: MIT
// What device code asks of the host executor (src/gpu/host) when kernels run on CPU threads.
// One lane is one GPU thread: a fiber (default) or an OS thread (XIO_HOST_EXEC=threads).
// Functions that take a mask are collective over its lanes: every lane of the mask must call them.
// Outside a kernel (current == nullptr) the caller is a wave of one lane; none of these may be called then.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "xio/export.h"

// The name that libxio shows for a function of C++ on the host platform. A process may have a HIP of its own, or
// another library that defines HIP's names: what programs call by those names must not be found in either by chance.
#define XIO_HOST_SYMBOL(name) __asm__("xio_host_" #name)

namespace xio::host_exec {

struct index3 {
  unsigned x, y, z;
};

struct lane {
  index3 thread_index, block_index, block_size, grid_size;
  unsigned lane_id;    // 0..wave_size-1
  unsigned wave_size;  // 32 or 64
  unsigned wave_live;  // lanes of this wave that were launched
  // The call of a wave or workgroup that it is in, and what its arguments come to: see group_call.
  const char* call;
  std::uint64_t arguments;
};

// The running lane. Set by the executor on every switch; null on threads that run no kernel.
extern XIO_EXPORT __thread lane* current XIO_HOST_SYMBOL(current);

// --- Devices of software that sleep --------------------------------------------------------------------

// Not 0 while a thread sleeps that has devices of software. A lane that gives them work stores it, then wakes the
// thread.
extern XIO_EXPORT unsigned sleepers XIO_HOST_SYMBOL(sleepers);
XIO_EXPORT void wake() XIO_HOST_SYMBOL(wake);

// --- Calls that a whole wave or workgroup makes -------------------------------------------------------
// Lanes in them are compared: a lane in another call, or with other arguments, would lose data on a GPU in silence,
// and ends the kernel with a sentence here.

// An argument, or several in braces.
struct argument {
  std::uint64_t is = 0;
  template <class T>
  argument(const T& value) {
    if constexpr (std::is_pointer_v<T>) is = reinterpret_cast<std::uintptr_t>(value);
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) is = static_cast<std::uint64_t>(value);
    if constexpr (requires { value.view; }) is = reinterpret_cast<std::uintptr_t>(value.view);  // of a ctx or storage
    if constexpr (requires { value.token; }) is = value.token;                                  // of a team
  }
  argument(std::nullptr_t) {}
  argument(std::initializer_list<argument> all) {
    for (const argument& one : all) is = (is ^ one.is) * 0x9e3779b97f4a7c15u + (is >> 29);
  }
};

class group_call {
 public:
  group_call(const char* call, const argument& arguments) : me_(current) {
    if (me_ == nullptr) return;
    outer_ = me_->call;
    outer_arguments_ = me_->arguments;
    me_->call = call;
    me_->arguments = arguments.is;
  }
  ~group_call() {
    if (me_ == nullptr) return;
    me_->call = outer_;
    me_->arguments = outer_arguments_;
  }
  group_call(const group_call&) = delete;
  group_call& operator=(const group_call&) = delete;

 private:
  lane* me_;
  const char* outer_ = nullptr;
  std::uint64_t outer_arguments_ = 0;
};

// Lets every other lane of the workgroup run, and the other workgroups and processes when all pause.
XIO_EXPORT void pause() XIO_HOST_SYMBOL(pause);

// Nanoseconds of the clock of deadlines, which stands still while the process is stopped. Also outside of kernels.
XIO_EXPORT std::uint64_t deadline_clock() XIO_HOST_SYMBOL(deadline_clock);

// __syncthreads.
XIO_EXPORT void sync_workgroup() XIO_HOST_SYMBOL(sync_workgroup);

// The lanes of this wave that arrive here together, the caller among them: what the execution mask is on a
// GPU. With fibers the lanes that reach the same call within one turn of the wave; with OS threads the
// caller alone. "The caller alone" is always a legal result. Lanes are together only at one and the same call in the
// machine code, so a function that gives the group to its caller must be inlined there (XIO_CONVERGENT).
#if defined(__clang__)
__attribute__((convergent))
#endif
XIO_EXPORT std::uint64_t
converged_lanes() XIO_HOST_SYMBOL(converged_lanes);

// All lanes of this wave that have not returned from the kernel. Every one of them must call.
XIO_EXPORT std::uint64_t whole_wave() XIO_HOST_SYMBOL(whole_wave);

XIO_EXPORT void sync_lanes(std::uint64_t mask) XIO_HOST_SYMBOL(sync_lanes);
XIO_EXPORT std::uint64_t ballot(std::uint64_t mask, bool predicate) XIO_HOST_SYMBOL(ballot);
XIO_EXPORT std::uint64_t shuffle(std::uint64_t mask, std::uint64_t value, unsigned from_lane) XIO_HOST_SYMBOL(shuffle);
XIO_EXPORT std::uint64_t match(std::uint64_t mask, std::uint64_t key)
    XIO_HOST_SYMBOL(match);  // lanes of mask with my key

// Memory of this workgroup: the launch's dynamic shared memory, and one block per tag address.
XIO_EXPORT void* dynamic_shared() XIO_HOST_SYMBOL(dynamic_shared);
XIO_EXPORT void* static_shared(const void* tag, std::size_t bytes, std::size_t alignment)
    XIO_HOST_SYMBOL(static_shared);

}  // namespace xio::host_exec
