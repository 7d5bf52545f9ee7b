// SPDX-License-Identifier: MIT
// Forms of whole texts: what fits, and what the groups hold.
#include "base/text_form.hpp"

#include "../gtest.hpp"
#include "base/error.hpp"

namespace {

using strings = std::vector<std::string>;

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
  try {
    xio::text_form("(");
    FAIL() << "taken";
  } catch (const xio::error& e) {
    EXPECT_EQ(e.status(), XIO_ERR_INTERNAL);
    EXPECT_NE(std::string(e.what()).find("the expression ( is wrong"), std::string::npos) << e.what();
  }
}

}  // namespace
