// SPDX-License-Identifier: MIT
// Which bootstrap is taken where nobody says it, and what is refused.
#include "bootstrap/tcp.hpp"
#include "bootstrap_rig.hpp"

using namespace rig;

namespace {

TEST(bootstrap_choice, local_is_one_pe) {
  auto o = xio::options::defaults();
  o.bootstrap = xio::option::bootstrap::local;
  auto c = xio::bootstrap::connect(o);
  EXPECT_STREQ(c->name(), "local");
  EXPECT_EQ(c->size(), 1);
  check_allgather(*c, 100, 3);
  c->barrier();
}

bool started_by_a_launcher() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "XIO_RUN_PE"})
    if (getenv(variable) != nullptr) return true;
  return false;
}

TEST(bootstrap_choice, auto_takes_tcp_when_a_root_is_set) {
  if (started_by_a_launcher()) GTEST_SKIP() << "the launcher says how";
  auto o = tcp_options(free_port(), 0, 1);
  o.bootstrap = xio::option::bootstrap::automatic;
  EXPECT_STREQ(xio::bootstrap::connect(o)->name(), "tcp");
  o.tcp_root = o.tcp_rank = o.tcp_size = "";  // a key alone asks for nothing: a shell may have it for all its programs
  EXPECT_STREQ(xio::bootstrap::connect(o)->name(), "local");
}

TEST(bootstrap_choice, auto_refuses_a_rank_or_a_size_without_a_root) {
  if (started_by_a_launcher()) GTEST_SKIP() << "the launcher says how";
  const struct {
    const char *rank, *size, *expected;
  } all[] = {{"1", "2", "XIO_TCP_RANK='1' and XIO_TCP_SIZE='2' without XIO_TCP_ROOT"},
             {"1", "", "XIO_TCP_RANK='1' without XIO_TCP_ROOT"},
             {"", "2", "XIO_TCP_SIZE='2' without XIO_TCP_ROOT"}};
  for (const auto& half : all) {
    auto o = tcp_options(4711, 0, 2, 300);
    o.bootstrap = xio::option::bootstrap::automatic;
    o.tcp_root = "";
    o.tcp_rank = half.rank;
    o.tcp_size = half.size;
    expect_outcome(outcome_of([&] { xio::bootstrap::connect(o); }), XIO_ERR_CONFIG, {half.expected});
  }
}

}  // namespace
