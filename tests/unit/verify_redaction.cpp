// SPDX-License-Identifier: MIT
// What xio-verify takes out of a report, and what it leaves. All names and addresses here are made up.
#include "../gtest.hpp"
#include "tools/xio-verify/redaction.hpp"

namespace {

using xio::verify::redactor;
using json = nlohmann::ordered_json;

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
