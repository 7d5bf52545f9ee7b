// SPDX-License-Identifier: MIT
// What a call came to: for calls that one thread makes and another one looks at.
#pragma once
#include "refusal.hpp"

namespace xio::test {

struct outcome {
  xio_status_t status = XIO_OK;
  std::string sentence;
  double seconds = 0;
};

inline outcome outcome_of(const std::function<void()>& body) {
  outcome o;
  const auto start = std::chrono::steady_clock::now();
  o.status = guard(body);
  o.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (o.status != XIO_OK) o.sentence = last_error();
  return o;
}

// Expects the status, all these words in the sentence, and fewer seconds.
inline void expect_outcome(const outcome& o, xio_status_t status, std::initializer_list<std::string_view> words,
                           double seconds = 1e9) {
  EXPECT_EQ(o.status, status) << o.sentence;
  expect_words(o.sentence, words);
  EXPECT_LT(o.seconds, seconds) << o.sentence;
}

inline void expect_all_ok(const std::vector<outcome>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].status, XIO_OK) << i << ": " << all[i].sentence;
}

}  // namespace xio::test
