// SPDX-License-Identifier: MIT
// xio-verify --import reads what strangers send: reports that are wrong on purpose are refused with a sentence, and
// nothing of a report's texts is more than text in the rows that are made of it.
#include "../gtest.hpp"
#include "base/error.hpp"
#include "tools/xio-verify/import.hpp"

namespace {

using namespace xio::verify;

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
  try {
    (void)check_report(text);
  } catch (const xio::error& e) {
    EXPECT_EQ(e.status(), XIO_ERR_ARG);
    return e.what();
  }
  return "";
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

}  // namespace
