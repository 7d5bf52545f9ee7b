// SPDX-License-Identifier: MIT
// A GPU thread of the host platform that runs out of its stack: the process says so before it dies, and other SIGSEGVs
// and other handlers are as they were. Each case is a process of its own.
#include "../gtest.hpp"
#include "xio/hip.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SKIP_UNDER_SANITIZERS() GTEST_SKIP() << "sanitizers have a handler of their own"
#else
#define SKIP_UNDER_SANITIZERS() (void)0
#endif

namespace {

constexpr const char* k_sentence =
    "xio error: a thread of a kernel ran out of its stack of 32768 bytes; set XIO_HOST_STACK";

__attribute__((noinline)) int deep(int left) {
  volatile char frame[500];
  frame[0] = static_cast<char>(left);
  return left <= 0 ? frame[0] : deep(left - 1) + frame[0];
}

// Mistakes of kernels. Their threads synchronise first, so that each thread is on a stack of its own.
__global__ void recurse(int depth) {
  __syncthreads();
  deep(depth);
}
// Touches only the low end of a large array, which lies beyond a guard of one page.
__global__ void use_array() {
  __syncthreads();
  char large[80 << 10];
  *const_cast<volatile char*>(large) = 1;
}
__global__ void follow_null(volatile int* where) { *where = 1; }
__global__ void nothing() { __syncthreads(); }

template <class Kernel, class... Arguments>
void run(Kernel kernel, Arguments... arguments) {
  setenv("XIO_HOST_STACK", "32k", 1);
  setenv("XIO_HOST_EXEC", "fibers", 1);
  hipLaunchKernelGGL(kernel, dim3(2), dim3(64), 0, nullptr, arguments...);
  (void)hipDeviceSynchronize();
}

void say_mine(int) {
  (void)!write(STDERR_FILENO, "mine\n", 5);
  _exit(7);
}
void say_mine_with_address(int, siginfo_t* info, void*) {
  (void)!write(STDERR_FILENO, info->si_addr == nullptr ? "null\n" : "place\n", info->si_addr == nullptr ? 5 : 6);
  _exit(8);
}

// Before the executor has started, as a library does that is initialised first.
void handle_first(bool with_address) {
  struct sigaction action {};
  action.sa_flags = with_address ? SA_SIGINFO : 0;
  if (with_address)
    action.sa_sigaction = &say_mine_with_address;
  else
    action.sa_handler = &say_mine;
  sigaction(SIGSEGV, &action, nullptr);
}

// Runs it in a process of its own, and keeps what that wrote.
struct host_stack : testing::Test {
  void SetUp() override {
    SKIP_UNDER_SANITIZERS();
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
  }
};

TEST_F(host_stack, enough_of_it_says_nothing) {
  EXPECT_EXIT((run(recurse, 20), std::exit(0)), testing::ExitedWithCode(0), "^$");
}

TEST_F(host_stack, too_deep_a_recursion_is_named) {
  EXPECT_EXIT(run(recurse, 1000000), testing::KilledBySignal(SIGSEGV), k_sentence);
}

TEST_F(host_stack, too_large_an_array_is_named) {
  EXPECT_EXIT(run(use_array), testing::KilledBySignal(SIGSEGV), k_sentence);
}

TEST_F(host_stack, another_wrong_address_is_not_taken_for_it) {
  const auto nobody_handles_it = [] { signal(SIGSEGV, SIG_DFL); };  // libraries that this one needs do
  EXPECT_EXIT((nobody_handles_it(), run(follow_null, nullptr)), testing::KilledBySignal(SIGSEGV), "^$");
  EXPECT_EXIT((nobody_handles_it(), run(nothing), follow_null(nullptr)), testing::KilledBySignal(SIGSEGV), "^$")
      << "of the program's thread";
  EXPECT_EXIT((nobody_handles_it(), run(nothing), raise(SIGSEGV)), testing::KilledBySignal(SIGSEGV), "^$")
      << "sent and not met";
}

TEST_F(host_stack, a_handler_that_was_there_comes_next) {
  EXPECT_EXIT((handle_first(false), run(recurse, 1000000)), testing::ExitedWithCode(7), "ran out of its stack.*\nmine");
  EXPECT_EXIT((handle_first(true), run(recurse, 1000000)), testing::ExitedWithCode(8), "ran out of its stack.*\nplace");
  EXPECT_EXIT((handle_first(false), run(follow_null, nullptr)), testing::ExitedWithCode(7), "^mine");
  EXPECT_EXIT((handle_first(true), run(follow_null, nullptr)), testing::ExitedWithCode(8), "^null");
}

TEST_F(host_stack, a_handler_that_comes_later_has_it_alone) {
  EXPECT_EXIT((run(nothing), handle_first(false), run(follow_null, nullptr)), testing::ExitedWithCode(7), "^mine");
}

TEST_F(host_stack, signals_that_are_ignored_stay_ignored) {
  EXPECT_EXIT((signal(SIGSEGV, SIG_IGN), run(nothing), raise(SIGSEGV), raise(SIGSEGV), std::exit(0)),
              testing::ExitedWithCode(0), "^$");
}

}  // namespace
