// SPDX-License-Identifier: MIT
#pragma once
#include <exception>

namespace xio {

// Runs a step that exchanges by itself; what it throws is for the vote that follows, so that no PE stays behind there.
template <class Step>
std::exception_ptr attempt(Step&& step) {
  try {
    step();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace xio
