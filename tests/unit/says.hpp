// SPDX-License-Identifier: MIT
// Whether a sentence has the words that it must have.
#pragma once
#include "../gtest.hpp"
#include "xio/status.h"
#include "xio/xio.h"

namespace xio::test {

inline bool says(const std::string& sentence, const std::string& words) {
  return sentence.find(words) != std::string::npos;
}

}  // namespace xio::test

// Of a call of the C API.
#define EXPECT_REFUSED(call, wanted, words)                 \
  do {                                                      \
    EXPECT_EQ(call, wanted) << xio_last_error();            \
    EXPECT_PRED2(xio::test::says, xio_last_error(), words); \
  } while (false)
