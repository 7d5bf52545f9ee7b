// SPDX-License-Identifier: MIT
// What a call that is refused says.
#pragma once
#include "../gtest.hpp"
#include "base/error.hpp"

namespace xio::test {

// Returns the sentence of the error that the call throws, and expects the status with it.
template <class Call>
std::string refusal(xio_status_t status, Call&& call) {
  try {
    call();
  } catch (const error& e) {
    EXPECT_EQ(e.status(), status) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

// The same where any status will do; "" if nothing is thrown.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

inline void expect_words(const std::string& sentence, std::initializer_list<std::string_view> words) {
  for (const auto w : words) EXPECT_NE(sentence.find(w), std::string::npos) << w << " is missing in: " << sentence;
}

}  // namespace xio::test
