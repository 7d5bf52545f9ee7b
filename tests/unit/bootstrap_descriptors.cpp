// SPDX-License-Identifier: MIT
// The TCP bootstrap where files cannot be opened any more: it helps itself, waits, or says what is missing.
#include <dlfcn.h>
#include <sys/resource.h>

#include "base/log.hpp"
#include "bootstrap_rig.hpp"

namespace {

std::atomic<int> g_full_table{0};  // so many sockets more are refused, as by a machine without descriptors

}  // namespace

// Stands before the C library's, for the library under test as well.
extern "C" int socket(int family, int type, int protocol) noexcept {
  static const auto real = reinterpret_cast<int (*)(int, int, int)>(dlsym(RTLD_NEXT, "socket"));
  if (g_full_table > 0) {
    --g_full_table;
    errno = ENFILE;
    return -1;
  }
  return real(family, type, protocol);
}

namespace {

using namespace rig;
using xio::bootstrap::connect_tcp;

constexpr int k_other_failure = 42;  // a child's exit status

// In a child of its own, for a hard limit cannot be raised again.
[[noreturn]] void connect_with(const xio::options& o, rlim_t soft, rlim_t hard) {
  xio::log::set_level(xio::log::level::info);
  const rlimit few{soft, hard};
  if (setrlimit(RLIMIT_NOFILE, &few) != 0) _exit(k_other_failure);
  const auto out = outcome_of([&] { connect_tcp(o); });
  std::fprintf(stderr, "%s\n", out.sentence.c_str());
  _exit(out.seconds < 5 ? -out.status : k_other_failure);  // waiting brings none
}

rlim_t hard_limit() {
  rlimit l{};
  getrlimit(RLIMIT_NOFILE, &l);
  return l.rlim_max;
}

TEST(descriptors, too_few_have_a_cure_on_both_sides) {
  const int port = free_port();
  for (const int rank : {0, 1})
    EXPECT_EXIT(connect_with(tcp_options(port, rank, 2), 0, 0), testing::ExitedWithCode(-XIO_ERR_IO),
                "127.0.0.1:" + std::to_string(port) + ".*may open 0 files; raise the limit of open files");
}

// The C library has none for its files and name servers then, and says that there is no such name.
TEST(descriptors, too_few_to_look_up_a_name_are_named_as_the_cause) {
  for (const int rank : {0, 1}) {
    auto o = tcp_options(free_port(), rank, 2);
    o.tcp_root = "localhost:4711";
    EXPECT_EXIT(connect_with(o, 0, 0), testing::ExitedWithCode(-XIO_ERR_IO),
                "'localhost' of XIO_TCP_ROOT.*may open 0 files; raise the limit of open files");
  }
}

// Nobody else comes to these worlds; that shows in time what they had a descriptor for.
TEST(descriptors, the_soft_limit_is_raised_to_look_up_to_listen_and_to_connect) {
  for (const char* host : {"127.0.0.1:", "localhost:"}) {
    for (const int rank : {0, 1}) {
      const int port = free_port();
      auto o = tcp_options(port, rank, 2, 300);
      o.tcp_root = host + std::to_string(port);
      EXPECT_EXIT(connect_with(o, 0, hard_limit()), testing::ExitedWithCode(-XIO_ERR_TIMEOUT),
                  std::string("raised .*soft limit of open files.*") + (rank == 0 ? "rank 1" : "Connection refused"));
    }
  }
}

TEST(descriptors, of_a_machine_without_any_are_waited_for) {
  const int port = free_port();
  const auto listeners = listen_on(port);
  g_full_table = 3;
  const auto o = outcome_of([&] { connect_tcp(tcp_options(port, 1, 2, 500)); });
  EXPECT_EQ(g_full_table.exchange(0), 0);
  expect_outcome(o, XIO_ERR_TIMEOUT, {"took the connection of rank 1"});
}

TEST(descriptors, of_a_machine_without_any_are_not_waited_for_longer_than_asked) {
  g_full_table = 1 << 30;
  const auto o = outcome_of([&] { connect_tcp(tcp_options(4711, 1, 2, 300)); });
  g_full_table = 0;
  expect_outcome(o, XIO_ERR_TIMEOUT, {"Too many open files in system"}, 2.0);
  EXPECT_GE(o.seconds, 0.29);
}

TEST(descriptors, of_a_machine_without_any_may_be_why_a_name_is_not_found) {
  auto options = tcp_options(4711, 1, 2, 300);
  options.tcp_root = "no-such-host.invalid:4711";
  g_full_table = 1 << 30;
  const auto o = outcome_of([&] { connect_tcp(options); });
  g_full_table = 0;
  expect_outcome(o, XIO_ERR_IO, {"raise the sysctl fs.file-max"}, 2.0);
}

}  // namespace
