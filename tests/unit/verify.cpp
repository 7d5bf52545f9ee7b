// SPDX-License-Identifier: MIT
// What xio-verify judges by: its child processes, imported reports, litmus tests, and redaction.
#include "outcome.hpp"
#include "tools/xio-verify/child.hpp"
#include "tools/xio-verify/import.hpp"
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

// --- Imported reports -------------------------------------------------------------------------------
// xio-verify --import reads what strangers send: reports that are wrong on purpose are refused with a sentence, and
// nothing of a report's texts is more than text in the rows that are made of it.

json good() {
  return {{"format", "xio-verify report"},
          {"format_version", 1},
          {"made", "2026-11-26T03:00Z"},
          {"commit", "614fde0f27bc"},
          {"verdict", "passed"},
          {"platform", "hip"},
          {"simulated", false},
          {"gpus", {{{"name", "Some GPU"}, {"arch", "gfx90a"}}, {{"name", "Some GPU"}, {"arch", "gfx90a"}}}},
          {"stages",
           {{{"name", "machine"}, {"status", "passed"}, {"rows", {{{"part", "system"}, {"kernel", "6.8.0"}}}}},
            {{"name", "orders"},
             {"status", "passed"},
             {"rows",
              {{{"test", "a"}, {"data", "X"}, {"weak_outcome", "forbidden"}, {"runs", 100}, {"weak", 0}},
               {{"test", "a"}, {"data", "Y"}, {"weak_outcome", "allowed"}, {"runs", 50}, {"weak", 7}}}}},
            {{"name", "sdma"},
             {"status", "failed"},
             {"why", "exit status 1"},
             {"rows",
              {{{"step", "put"}, {"pe", 0}, {"checks", 10}, {"wrong", 2}},
               {{"step", "carrier"}, {"pe", 0}, {"backend_sdma", "kfd"}}}}},
            {{"name", "cost-direct"},
             {"status", "passed"},
             {"rows", {{{"test", "put_lat"}, {"scope", "thread"}, {"bytes", 8}, {"median_us", 1.25}}}}},
            {{"name", "rdma"}, {"status", "skipped"}, {"why", "nothing"}}}}};
}

// The sentence that it is refused with, or "".
std::string refusal(const std::string& text) {
  const auto o = xio::test::outcome_of([&] { (void)check_report(text); });
  EXPECT_EQ(o.status, o.sentence.empty() ? XIO_OK : XIO_ERR_ARG);
  return o.sentence;
}
std::string refusal(const std::function<void(json&)>& spoil) {
  json report = good();
  spoil(report);
  return refusal(report.dump());
}
bool names(const std::string& sentence, const std::string& part) {
  EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  return sentence.find(part) != std::string::npos;
}

TEST(import, makes_a_row_of_each_stage_that_ran) {
  const std::string rows = rows_of_report(check_report(good().dump()));
  EXPECT_EQ(
      rows,
      "| 2 Some GPU (gfx90a), Linux 6.8.0 | orders: orders within a GPU, and with the host | 614fde0f27bc, "
      "2026-11-26 | passed: 0 forbidden outcomes in 150 runs of 2 tests in 2 places of memory; weak outcomes seen "
      "where allowed: 7 | `xio-verify`, a report that was sent |\n"
      "| 2 Some GPU (gfx90a), Linux 6.8.0 | sdma: copy engines | 614fde0f27bc, 2026-11-26 | failed: 10 checks, 2 "
      "wrong; sdma: kfd; exit status 1 | `xio-verify`, a report that was sent |\n"
      "| 2 Some GPU (gfx90a), Linux 6.8.0 | cost-direct: cost of ops by loads and stores | 614fde0f27bc, "
      "2026-11-26 | passed: put\\_lat thread 8 B 1.25 us | `xio-verify`, a report that was sent |\n");
}

TEST(import, says_what_is_simulated) {
  json report = good();
  report["simulated"] = true;
  EXPECT_EQ(rows_of_report(check_report(report.dump())).find("| simulated, not silicon: 2 Some GPU"), 0u);
  EXPECT_EQ(rows_of_report(check_report(report.dump())).find("1.25 us"), std::string::npos);
  report["platform"] = "host";
  EXPECT_EQ(rows_of_report(check_report(report.dump())).find("| host platform, no GPU"), 0u);
}

TEST(import, texts_cannot_leave_their_cell) {
  json report = good();
  report["gpus"] = {{{"name", "a | b\n| c | <script>`x`</script> [l](http://e) \x1b[31m \u202Eevil\u00e9 **b** $x$"},
                     {"arch", std::string(5000, 'g')}}};
  report["stages"][2]["why"] = "line\r\nother|cell on 192.168.1.7 at 00:11:22:33:44:55";
  const std::string rows = rows_of_report(check_report(report.dump()));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 3);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const bool is_mark = rows[i] == '<' || rows[i] == '[';
    EXPECT_TRUE(!is_mark || rows[i - 1] == '\\') << rows;
  }
  for (const char c : rows) EXPECT_TRUE(c == '\n' || (c >= 32 && c < 127)) << static_cast<int>(c);
  EXPECT_PAIRS((rows.find("192.168"), std::string::npos), (rows.find("00:11:22"), std::string::npos));
  // Each line has the six bars of a row with five cells, and no more that are not escaped.
  std::size_t bars = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) bars += rows[i] == '|' && (i == 0 || rows[i - 1] != '\\') ? 1 : 0;
  EXPECT_EQ(bars, 3u * 6u);
  EXPECT_LT(rows.size(), 3000u);
}

TEST(import, refuses_what_is_no_report) {
  names(refusal(""), "no JSON");
  names(refusal("{"), "no JSON");
  names(refusal("[1, 2]"), "no report of xio-verify");
  names(refusal("{\"format\": 7}"), "no text 'format'");
  names(refusal("{\"format\": \"other\"}"), "no report of xio-verify");
  names(refusal("\xff\xfe{}"), "no JSON");
  names(refusal(good().dump().substr(0, 300)), "no JSON");
  names(refusal("{\"format\": " + std::string(100000, '[') + std::string(100000, ']') + "}"), "nested deeper");
}

TEST(import, refuses_values_that_xio_verify_does_not_write) {
  names(refusal([](json& r) { r["format_version"] = 2; }), "format_version");
  names(refusal([](json& r) { r["commit"] = "main; rm"; }), "commit");
  names(refusal([](json& r) { r["commit"] = "614fde0f27bc-evil"; }), "commit");
  names(refusal([](json& r) { r["commit"] = nullptr; }), "commit");
  names(refusal([](json& r) { r["made"] = "yesterday"; }), "'made'");
  names(refusal([](json& r) { r["verdict"] = "splendid"; }), "verdict");
  names(refusal([](json& r) { r["platform"] = "abacus"; }), "platform");
  names(refusal([](json& r) { r["simulated"] = "no"; }), "simulated");
  names(refusal([](json& r) { r["gpus"] = 7; }), "gpus");
  names(refusal([](json& r) { r["gpus"] = {{{"name", 1}}}; }), "GPU");
  names(refusal([](json& r) { r.erase("stages"); }), "stages");
  names(refusal([](json& r) { r["stages"] = json::object(); }), "stages");
  names(refusal([](json& r) { r["stages"] = json::array_t(65, r["stages"][0]); }), "stages");
  names(refusal([](json& r) { r["stages"][0] = 7; }), "stage");
  names(refusal([](json& r) { r["stages"][0]["name"] = "../x"; }), "does not know");
  names(refusal([](json& r) { r["stages"][1]["name"] = "machine"; }), "twice");
  names(refusal([](json& r) { r["stages"][1]["status"] = "great"; }), "status");
  names(refusal([](json& r) { r["stages"][1]["rows"] = "x"; }), "rows");
  names(refusal([](json& r) { r["stages"][1]["rows"][0] = 3; }), "orders, row 0");
  names(refusal([](json& r) { r["stages"][1]["rows"][0]["runs"] = -1; }), "'runs'");
  names(refusal([](json& r) { r["stages"][1]["rows"][0]["runs"] = 1e300; }), "'runs'");
  names(refusal([](json& r) { r["stages"][1]["rows"][0]["weak"] = 101; }), "more weak outcomes than runs");
  names(refusal([](json& r) { r["stages"][1]["rows"][0]["data"] = {1}; }), "'data'");
  names(refusal([](json& r) { r["stages"][3]["rows"][0]["median_us"] = -1; }), "'median_us'");
  names(refusal([](json& r) { r["stages"][3]["rows"][0]["median_us"] = "fast"; }), "'median_us'");
  names(refusal([](json& r) { r["stages"][3]["facts"] = "x"; }), "facts");
  EXPECT_EQ(refusal([](json&) {}), "");
}

TEST(import, refuses_a_report_without_kernels) {
  json report = good();
  report["stages"] = json::array({report["stages"][0]});
  EXPECT_THROW((void)rows_of_report(check_report(report.dump())), xio::error);
}

TEST(import, reads_regular_files_alone) {
  EXPECT_THROW((void)read_report("/nowhere/report.json"), xio::error);
  EXPECT_THROW((void)read_report("/tmp"), xio::error);
  EXPECT_THROW((void)read_report("/dev/zero"), xio::error);
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
