// SPDX-License-Identifier: MIT
// What a call that is refused says.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace xio::test {

// Answers the sentence, and expects the status with it.
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

}  // namespace xio::test
