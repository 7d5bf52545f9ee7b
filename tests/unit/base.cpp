// SPDX-License-Identifier: MIT
// Small parts of src/base.
#include "base/peer_word.hpp"
#include "base/text_form.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/link.hpp"
#include "config.h"
#include "ctx/agreement.hpp"
#include "liar.hpp"
#include "refusal.hpp"
#include "transport/rdma/exchange.hpp"

namespace {

using namespace std::chrono_literals;
using strings = std::vector<std::string>;
using xio::peer_status;
using xio::printable;
using xio::run_clock;
using xio::run_time;
using namespace xio::test;

// --- The clock of deadlines -------------------------------------------------------------------------
// The clock of deadlines, by made-up readings and by a process that is really stopped.

constexpr std::int64_t k_ms = 1000000;

TEST(run_time, counts_all_that_is_looked_at) {
  run_time t{0, 0};
  std::int64_t now = 5000 * k_ms;
  const std::int64_t start = t.read(now);
  for (int i = 1; i <= 100; ++i) {
    now += 100 * k_ms;
    EXPECT_EQ(t.read(now) - start, 100 * k_ms * i);
  }
}

TEST(run_time, leaves_out_what_nobody_looked_at_and_never_runs_backwards) {
  for (std::int64_t gap = 100 * k_ms; gap < 10000 * k_ms; gap += 37 * k_ms) {
    run_time t{0, 0};
    std::int64_t now = 123456789;
    const std::int64_t start = t.read(now);
    const std::int64_t after = t.read(now += gap) - start;
    EXPECT_GE(after, 0) << gap;
    EXPECT_LE(after, gap) << gap;
    if (gap > 400 * k_ms) {
      EXPECT_LT(after, 150 * k_ms) << gap;
    }
    EXPECT_EQ(t.read(now + 10 * k_ms) - start - after, 10 * k_ms);
  }
}

// A child waits 1 s by a deadline and is stopped for 2 s meanwhile: it has waited 3 s when it ends.
TEST(run_clock, stands_still_while_the_process_is_stopped) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const auto until = xio::bootstrap::deadline::in(1000);
    while (!until.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(until.poll_ms()));
    _exit(0);
  }
  std::this_thread::sleep_for(300ms);
  kill(child, SIGSTOP);
  std::this_thread::sleep_for(2000ms);
  kill(child, SIGCONT);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 2700ms);
}

TEST(run_clock, a_deadline_is_looked_at_often) {
  const auto until = xio::bootstrap::deadline::in(60000);
  EXPECT_LE(until.poll_ms(), 100);
  EXPECT_EQ(xio::bootstrap::deadline::in(60000).poll_ms(7), 7);
}

// --- Words of peers ---------------------------------------------------------------------------------
// What another process says reaches logs, sentences and enums only after it was checked.

bool has_control(const std::string& text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  return false;
}

TEST(peer_word, loses_its_control_bytes) {
  for (int c = 0; c < 256; ++c) {
    const std::string one(1, static_cast<char>(c));
    EXPECT_EQ(printable("a" + one + "b"), c >= 0x20 && c < 0x7f ? "a" + one + "b" : "a?b") << c;
  }
  EXPECT_EQ(printable("\x1b[2Jgone\r\nPE 0: all is well\a"), "?[2Jgone??PE 0: all is well?");
}

// RFC 3629: what is no UTF-8 is shown as '?', byte by byte; C1 control characters are U+0080 to U+009F.
TEST(peer_word, keeps_what_is_utf_8) {
  for (const char* good :
       {"", "plain", "gr\xc3\xbc\xc3\x9f", "\xe2\x82\xac", "\xf0\x9f\x9a\x80", "\xc2\xa0", "\xef\xbf\xbd"})
    EXPECT_EQ(printable(good), good);
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(printable("\xf5\x80\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(printable("cut \xe2\x82"), "cut ??");
}

TEST(peer_word, is_a_status_only_if_there_is_one_of_that_number) {
  for (int number = -40; number <= 40; ++number) {
    const bool known = number <= -1 && number >= -16;  // XIO_ERR_ARG to XIO_ERR_INTERNAL
    EXPECT_EQ(static_cast<int>(peer_status(number)), known ? number : static_cast<int>(XIO_ERR_PEER)) << number;
  }
  for (const std::int32_t number : {INT32_MIN, INT32_MAX, 256, -256}) EXPECT_EQ(peer_status(number), XIO_ERR_PEER);
}

// A digest: call 0, status 4. A ballot, for which a bad digest asks: call 0, status 4, values 8, sentence 56. See
// ctx/agreement.cpp.
TEST(peer_word, of_a_vote_is_checked) {
  for (const std::int32_t status : {7, -999, INT32_MIN}) {
    int messages = 0;
    liar c([&](unsigned char* ballot) {
      std::memcpy(ballot + 4, &status, sizeof status);
      if (messages++ == 0) return;
      std::memset(ballot + 56, 'x', 200);  // without an end
      std::memcpy(ballot + 56, "\x1b]0;title\a\n", 11);
    });
    const auto said = refusal(XIO_ERR_PEER, [&] { xio::agreement(c).each(xio::call::barrier, [] {}); });
    EXPECT_FALSE(has_control(said)) << said;
    EXPECT_EQ(said.substr(0, 19), "PE 1: ?]0;title??xx");
  }
}

// A message of the RDMA set-up: status at 8; see transport/rdma/exchange.cpp.
TEST(peer_word, of_the_rdma_set_up_is_checked) {
  const std::int32_t status = 12345;
  liar c([&](unsigned char* message) { std::memcpy(message + 8, &status, sizeof status); });
  const xio::rdma::identity mine{0x10000, 1 << 20, 1, 1 << 30, {0x100}, {}};
  expect_words(refusal(XIO_ERR_PEER, [&] { xio::rdma::exchange_identities(c, mine, XIO_OK); }),
               {"PE 1 could not set up RDMA (XIO_ERR_PEER)"});
}

std::string abort_of(std::int32_t status, const std::string& sentence, xio_status_t seen) {
  xio::bootstrap::frame f{xio::bootstrap::frame_kind::abort, {}};
  f.payload.resize(4 + sentence.size());
  for (int i = 0; i < 4; ++i) f.payload[static_cast<std::size_t>(i)] = static_cast<std::byte>(status >> (8 * i) & 0xff);
  std::memcpy(f.payload.data() + 4, sentence.data(), sentence.size());
  return refusal(seen, [&] { xio::bootstrap::throw_abort(f, "rank 1"); });
}

TEST(peer_word, of_a_rank_that_gives_up_is_checked) {
  EXPECT_EQ(abort_of(XIO_ERR_CONFIG, "line one\nPE 0: a lie\x1b[31m", XIO_ERR_CONFIG), "line one?PE 0: a lie?[31m");
  for (const std::int32_t status : {0, 1, 5, -17, INT32_MIN, INT32_MAX})
    EXPECT_EQ(abort_of(status, "because", XIO_ERR_PEER), "rank 1 gave the world up: because") << status;
  EXPECT_LT(abort_of(XIO_ERR_IO, std::string(60'000, 'x'), XIO_ERR_IO).size(), 3000u);
}

// --- Forms of text ----------------------------------------------------------------------------------
// Forms of whole texts: what fits, and what the groups hold.

TEST(text_form, whole_texts_fit_and_parts_of_texts_do_not) {
  const xio::text_form disk("nvme[0-9]+n[0-9]+");
  EXPECT_TRUE(disk.fits("nvme0n1"));
  EXPECT_TRUE(disk.fits("nvme10n128"));
  for (const char* text : {"", "nvme0", "nvme0n1p1", "anvme0n1", "nvme0n1\n", "NVME0n1"})
    EXPECT_FALSE(disk.fits(text)) << text;
}

TEST(text_form, a_zero_byte_does_not_end_a_text) {
  EXPECT_FALSE(xio::text_form("nvme0").fits(std::string("nvme0\0n1", 8)));
}

TEST(text_form, parts_are_the_text_and_its_groups) {
  const xio::text_form disk("(nvme[0-9]+)(c[0-9]+)?(n[0-9]+)");
  EXPECT_EQ(disk.parts_of("nvme3c1n2"), (strings{"nvme3c1n2", "nvme3", "c1", "n2"}));
  EXPECT_EQ(disk.parts_of("nvme3n2"), (strings{"nvme3n2", "nvme3", "", "n2"}));
  EXPECT_EQ(disk.parts_of("nvme3"), strings{});
}

// The shorter alternative comes first, and the longer one makes the whole text.
TEST(text_form, the_longest_match_counts) { EXPECT_TRUE(xio::text_form("a|ab").fits("ab")); }

TEST(text_form, a_wrong_expression_is_refused) {
  expect_words(refusal(XIO_ERR_INTERNAL, [] { xio::text_form("("); }), {"the expression ( is wrong"});
}

}  // namespace
