// SPDX-License-Identifier: MIT
// A strand is a stack and the point where it stopped: what a fiber runs on. switch_strand() is the only place
// that changes stacks, and tells the sanitizers.
#pragma once
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define XIO_FIBERS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define XIO_FIBERS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define XIO_FIBERS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define XIO_FIBERS_TSAN 1
#endif
#endif
#if defined(XIO_FIBERS_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(XIO_FIBERS_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace xio::host_exec {

class fiber_workgroup;
struct lane_state;

struct strand {
  boost::context::detail::fcontext_t context = nullptr;  // valid while the strand does not run
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  fiber_workgroup* owner = nullptr;
  lane_state* lane = nullptr;  // what it runs
  void* fake_stack = nullptr;  // AddressSanitizer's
  void* tsan_fiber = nullptr;
};

// First thing that a new strand does with what it was entered with.
inline void enter_strand(boost::context::detail::transfer_t from, [[maybe_unused]] strand& self) {
  auto& left = *static_cast<strand*>(from.data);
  left.context = from.fctx;
#if defined(XIO_FIBERS_ASAN)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(self.fake_stack, &bottom, &bytes);
  // The first switch of an OS thread tells where its own stack lies.
  if (left.bottom == nullptr) {
    left.bottom = bottom;
    left.bytes = bytes;
  }
#endif
}

// Leaves `from`, which runs, for `to`; returns when somebody switches back.
inline void switch_strand(strand& from, strand& to) {
#if defined(XIO_FIBERS_ASAN)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
#endif
#if defined(XIO_FIBERS_TSAN)
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
  enter_strand(boost::context::detail::jump_fcontext(to.context, &from), from);
}

}  // namespace xio::host_exec
