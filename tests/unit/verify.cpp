// SPDX-License-Identifier: MIT
// What xio-verify judges by: its child processes, litmus tests, and redaction.
#include "outcome.hpp"
#include "tools/xio-verify/child.hpp"
#include "tools/xio-verify/litmus.hpp"
#include "tools/xio-verify/redaction.hpp"

namespace {

using namespace xio::verify;
using json = nlohmann::ordered_json;
using xio::verify::redactor;

// --- Child processes --------------------------------------------------------------------------------
// The programs that xio-verify runs: each ends, by itself or by its deadline, and leaves nothing behind.

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

// --- Litmus tests -----------------------------------------------------------------------------------
// How xio-verify judges what the parties of its litmus tests have read. Registers hold 1 + what was read, and 0 where a
// party did not come so far.

litmus_result judged(litmus t, std::vector<std::uint64_t> first, std::vector<std::uint64_t> second,
                     std::vector<std::uint64_t> third = {}) {
  const auto n = static_cast<std::uint32_t>(first.size());
  std::vector<std::uint64_t> all = first;
  all.insert(all.end(), second.begin(), second.end());
  third.resize(n);
  all.insert(all.end(), third.begin(), third.end());
  litmus_result r;
  count(t, all.data(), n, r);
  return r;
}

TEST(litmus, message_passing_counts_words_that_are_old) {
  const litmus_result r = judged(litmus::pass_by_store, {1, 1, 1, 1}, {1, 9, 2, 0});
  EXPECT_PAIRS((r.runs, 3u), (r.weak, 2u), (r.not_run, 1u), (r.outcomes.at("data before the flag"), 1u),
               (r.outcomes.at("old data behind the flag"), 2u));
}

TEST(litmus, passing_on_is_judged_by_the_third_party) {
  const litmus_result r = judged(litmus::pass_on, {1, 1}, {1, 1}, {1, 3});
  EXPECT_PAIRS((r.runs, 2u), (r.weak, 1u));
}

TEST(litmus, of_store_buffering_both_must_miss) {
  // Reads of 0 and 0, 0 and 1, 1 and 0, 1 and 1.
  const litmus_result r = judged(litmus::store_buffering, {1, 1, 2, 2}, {1, 2, 1, 2});
  EXPECT_PAIRS((r.weak, 1u), (r.outcomes.at("read 0 and 0"), 1u), (r.outcomes.at("read 1 and 1"), 1u));
}

TEST(litmus, of_load_buffering_both_must_see) {
  const litmus_result r = judged(litmus::load_buffering, {1, 1, 2, 2, 0}, {1, 2, 1, 2, 2});
  EXPECT_PAIRS((r.weak, 1u), (r.runs, 4u), (r.not_run, 1u));
}

TEST(litmus, adds_and_coherence_have_one_register_each) {
  EXPECT_PAIRS((judged(litmus::adds, {1, 2}, {7, 7}).weak, 1u), (judged(litmus::coherence, {1, 1}, {1, 4}).weak, 1u));
}

TEST(litmus, every_test_has_its_facts) {
  for (int i = 0; i < k_litmus_count; ++i) {
    const litmus_facts& f = facts_of(static_cast<litmus>(i));
    EXPECT_NE(std::string(f.test), "");
    EXPECT_TRUE(f.parties == 2 || f.parties == k_parties_max);
    // A control stands for nothing that XIO does.
    EXPECT_EQ(f.control, std::string(f.stands_for).empty()) << f.test << ", " << f.way;
  }
  EXPECT_TRUE(facts_of(litmus::pass_unordered).control);
  EXPECT_TRUE(facts_of(litmus::load_buffering_unordered).control);
  EXPECT_TRUE(facts_of(litmus::adds_in_gpu).in_gpu);
}

// --- Redaction --------------------------------------------------------------------------------------
// What xio-verify takes out of a report, and what it leaves. All names and addresses here are made up.

const redactor& poisoned() {
  static const redactor r({{"venom7.lab.example.org", "[host]"},
                           {"venom7", "[host]"},
                           {"mallory", "[user]"},
                           {"/srv/people/mallory", "[home]"},
                           {"Mallory Poison", "[user]"},
                           {"root", "[user]"},
                           {"gpu", "[host]"},
                           {"/", "[home]"},
                           {"x", "[user]"}});
  return r;
}
std::string text(const std::string& from) { return poisoned().text(from); }

TEST(redaction, takes_names_of_hosts_and_users_out) {
  EXPECT_EQ(text("on venom7.lab.example.org by mallory"), "on [host] by [user]");
  EXPECT_EQ(text("Venom7: VENOM7, venom7."), "[host]: [host], [host].");
  EXPECT_EQ(text("/srv/people/mallory/xio/b"), "[home]/xio/b");
  EXPECT_EQ(text("/home/eve/xio and /home/trudy"), "/home/[user]/xio and /home/[user]");
  EXPECT_EQ(text("Mallory Poison's"), "[user]'s");
}

TEST(redaction, leaves_words_that_only_contain_a_name) {
  EXPECT_EQ(text("venom77 mallorys premallory"), "venom77 mallorys premallory");
  // Too common to name anybody, and needed.
  EXPECT_PAIRS((text("gpu 0 of root, x"), "gpu 0 of root, x"), (text("a/b"), "a/b"));
}

TEST(redaction, takes_addresses_out) {
  EXPECT_PAIRS((text("at 192.168.17.4:4711"), "at [IP address]:4711"),
               (text("10.1.2.3/24, 10.1.2.3."), "[IP address]/24, [IP address]."),
               (text("fe80::1322:33ff:fe44:5566"), "[IP address]"), (text("[2001:db8::17]:80"), "[[IP address]]:80"),
               (text("mac 02:1a:2B:3c:4d:5e"), "mac [hardware address]"),
               (text("mac 02-1a-2b-3c-4d-5e,"), "mac [hardware address],"),
               (text("021a.2b3c.4d5e"), "[hardware address]"),
               (text("gid fe80:0000:0000:0000:0002:c903:0012:3456"), "gid [IP address]"),
               (text("guid 0002:c903:0012:3456"), "guid [hardware address]"),
               (text("guid 0x0002c90300123456"), "guid [identifier]"), (text("0002c90300123456"), "[identifier]"),
               (text("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:12:34:56"), "[hardware address]"),
               (text("on enx021a2b3c4d5e, rocex0002c90300123456"), "on [identifier], [identifier]"),
               (text("::ffff:10.0.0.1"), "[IP address]"));
}

TEST(redaction, takes_serial_numbers_out) {
  EXPECT_EQ(text("Device Serial Number 00-11-22-ff-fe-33-44-55"), "Device Serial Number [serial]");
  EXPECT_EQ(text("00-11-22-ff-fe-33-44-55"), "[hardware address]");
  EXPECT_EQ(text("serial: S3VENOM0815, and Serial=ABC99"), "serial: [serial], and Serial=[serial]");
  EXPECT_EQ(text("4c4c4544-0042-3510-8052-b4c04f564d32"), "[hardware address]");
  EXPECT_EQ(text("unique_id 123456789012"), "unique_id [serial]");
}

TEST(redaction, leaves_what_a_report_needs) {
  for (const char* kept :
       {"0000:3b:00.0", "gfx90a:sramecc+:xnack-", "0x74a1", "6.8.0-45-generic", "2026-11-26T03:00Z", "16.5 GB/s",
        "28.39.1002", "614fde0f27bc-dirty", "3b:00.0", "std::vector", "dead beef", "1.14.44", "580.159.04", "mlx5_0",
        "MT_0000000012", "0000:00:1f.6 to 0000:03:00.0", "4096 bytes: 12.34 us", "a serial port", "::"})
    EXPECT_EQ(text(kept), kept);
}

TEST(redaction, goes_through_all_of_json) {
  const json from = {{"venom7", {{"list", {"by mallory", 17, true, nullptr, 1.5}}, {"10.0.0.7", "x"}}}};
  const json wanted = {{"[host]", {{"list", {"by [user]", 17, true, nullptr, 1.5}}, {"[IP address]", "x"}}}};
  EXPECT_EQ(poisoned().all(from).dump(), wanted.dump());
  // Keys that have become the same lose no value.
  const json two = {{"10.0.0.7", 1}, {"10.0.0.8", 2}};
  EXPECT_EQ(poisoned().all(two).size(), 2u);
}

TEST(redaction, knows_this_machine_and_this_user) {
  setenv("SUDO_USER", "venomous_user", 1);
  setenv("HOSTNAME", "venomous-host.example", 1);
  const redactor here(xio::verify::names_here());
  unsetenv("SUDO_USER");
  unsetenv("HOSTNAME");
  EXPECT_EQ(here.text("venomous_user@venomous-host.example"), "[user]@[host]");
  char host[256] = "";
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  const std::string name = host;
  const std::string common[] = {"localhost", "host", "debian", "ubuntu"};
  const bool is_common = name.size() < 2 || std::find(std::begin(common), std::end(common), name) != std::end(common);
  EXPECT_EQ(here.text("on " + name), is_common ? "on " + name : "on [host]");
}

}  // namespace
