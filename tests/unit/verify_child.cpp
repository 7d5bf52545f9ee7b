// SPDX-License-Identifier: MIT
// The programs that xio-verify runs: each ends, by itself or by its deadline, and leaves nothing behind.
#include "../gtest.hpp"
#include "tools/xio-verify/child.hpp"

namespace {

using namespace xio::verify;

child_result shell(const std::string& script, double seconds = 20) {
  return run_child({{"/bin/sh", "-c", script}, {{"XIO_TEST_WORD", "given"}}}, seconds);
}

TEST(child, gives_status_and_output) {
  const child_result r = shell("echo out $XIO_TEST_WORD; echo err >&2; exit 7");
  EXPECT_PAIRS((r.how, ending::exited), (r.code, 7), (r.out, "out given\n"), (r.err, "err\n"));
}

TEST(child, names_a_signal) {
  const child_result r = shell("kill -SEGV $$");
  EXPECT_PAIRS((r.how, ending::killed), (r.code, SIGSEGV));
}

TEST(child, is_ended_at_its_deadline_with_all_that_it_started) {
  const child_result r = shell("trap '' TERM; sleep 100 & echo $!; wait; sleep 100", 0.3);
  EXPECT_EQ(r.how, ending::late);
  EXPECT_LT(r.seconds, 10);
  const pid_t grandchild = std::stoi(r.out);
  for (int i = 0; i < 100 && kill(grandchild, 0) == 0; ++i) usleep(20000);
  EXPECT_TRUE(kill(grandchild, 0) != 0 && errno == ESRCH);
}

TEST(child, does_not_wait_for_what_holds_its_output) {
  const child_result r = shell("sleep 50 & echo started");
  EXPECT_PAIRS((r.how, ending::exited), (r.out, "started\n"));
  EXPECT_LT(r.seconds, 10);
}

TEST(child, keeps_the_beginning_of_its_output_and_the_end_of_its_errors) {
  const child_result r = shell("head -c 12000000 /dev/zero; (head -c 100000 /dev/zero; echo last) >&2");
  EXPECT_PAIRS((r.how, ending::exited), (r.out.size(), std::size_t{8} << 20), (r.err.size(), std::size_t{16} << 10),
               (r.err.substr(r.err.size() - 5), "last\n"));
}

TEST(child, that_is_not_there_is_not_started) {
  const child_result r = run_child({{"/nowhere/program"}, {}}, 5);
  EXPECT_PAIRS((r.how, ending::not_started), (r.code, ENOENT));
}

}  // namespace
