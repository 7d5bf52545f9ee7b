// SPDX-License-Identifier: MIT
// The TCP bootstrap and host names that have no address yet, never get one, or move to another.
#include <dlfcn.h>
#include <netdb.h>

#include "bootstrap_rig.hpp"

namespace {

// How "rank0.test" resolves: first to the failure, so many times, then to the addresses in turn; the last one stays.
struct script {
  std::mutex lock;
  int failures = 0, failure = 0;
  std::vector<std::string> addresses;
  int asked = 0;
} g_script;

using getaddrinfo_function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);

int look_up(const char* node, const char* service, const addrinfo* hints, addrinfo** out) {
  static const auto real = reinterpret_cast<getaddrinfo_function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (std::strcmp(node, "rank0.test") != 0 || (hints->ai_flags & AI_NUMERICHOST) != 0)
    return real(node, service, hints, out);
  std::lock_guard hold(g_script.lock);
  if (g_script.asked++ < g_script.failures) return g_script.failure;
  const std::string address = g_script.addresses.front();
  if (g_script.addresses.size() > 1) g_script.addresses.erase(g_script.addresses.begin());
  return real(address.c_str(), service, hints, out);
}

}  // namespace

// These stand before the C library's, for the library under test as well.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** out) {
  return look_up(node, service, hints, out);
}
extern "C" int getaddrinfo_a(int, gaicb* list[], int count, sigevent*) noexcept {
  for (int i = 0; i < count; ++i)
    list[i]->__return = look_up(list[i]->ar_name, list[i]->ar_service, list[i]->ar_request, &list[i]->ar_result);
  return 0;
}
extern "C" int gai_error(gaicb* request) noexcept { return request->__return; }

namespace {

using namespace rig;
using xio::bootstrap::connect_tcp;

void say(int failures, int failure, std::vector<std::string> addresses) {
  std::lock_guard hold(g_script.lock);
  g_script.failures = failures;
  g_script.failure = failure;
  g_script.addresses = std::move(addresses);
  g_script.asked = 0;
}

xio::options named(int port, int rank, std::uint64_t timeout_ms = 20000) {
  auto o = tcp_options(port, rank, 2, timeout_ms);
  o.tcp_root = "rank0.test:" + std::to_string(port);
  return o;
}

constexpr int k_never = 1 << 30;

TEST(bootstrap_names, that_come_later_are_waited_for_whatever_is_said_of_them_before) {
  for (const int failure : {EAI_NONAME, EAI_AGAIN, EAI_NODATA, EAI_FAIL}) {
    say(4, failure, {"127.0.0.1"});
    const int port = free_port();
    const auto ends = in_threads(2, [&](int rank) { check_allgather(*connect_tcp(named(port, rank)), 8, 1); });
    SCOPED_TRACE(gai_strerror(failure));
    expect_all_ok(ends);
    EXPECT_GE(g_script.asked, 5);
  }
}

TEST(bootstrap_names, that_never_come_are_said_with_the_time_that_was_spent) {
  for (const int rank : {0, 1}) {
    say(k_never, EAI_NONAME, {});
    const auto end = outcome_of([&] { connect_tcp(named(4711, rank, 600)); });
    expect_outcome(end, XIO_ERR_TIMEOUT, {"'rank0.test' of XIO_TCP_ROOT has no address after 6"}, 5.0);
    EXPECT_GE(end.seconds, 0.59);
  }
}

TEST(bootstrap_names, are_not_asked_for_again_where_that_cannot_help) {
  say(k_never, EAI_FAMILY, {});
  expect_outcome(outcome_of([&] { connect_tcp(named(4711, 1, 20000)); }), XIO_ERR_CONFIG, {}, 5.0);
}

TEST(bootstrap_names, that_move_are_followed) {
  say(0, 0, {"127.0.0.9", "127.0.0.1"});  // where nobody listens, at first
  const int port = free_port();
  const auto ends = in_threads(2, [&](int rank) {
    check_allgather(*connect_tcp(rank == 0 ? tcp_options(port, 0, 2, 20000) : named(port, 1)), 8, 1);
  });
  expect_all_ok(ends);
}

}  // namespace
