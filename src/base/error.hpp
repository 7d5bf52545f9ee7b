// SPDX-License-Identifier: MIT
// The one error type. Inside the library errors are exceptions; at the C boundary guard() turns them
// into a status and keeps the sentence for xio_last_error().
#pragma once
#include <fmt/core.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "xio/status.h"

namespace xio {

class error : public std::exception {
 public:
  error(xio_status_t status, std::string sentence) : status_(status), sentence_(std::move(sentence)) {}
  xio_status_t status() const noexcept { return status_; }
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  xio_status_t status_;
  std::string sentence_;
};

// Throws. The sentence says what failed, on what, why, and what to do about it.
template <class... Args>
[[noreturn]] void fail(xio_status_t status, fmt::format_string<Args...> text, Args&&... args) {
  throw error(status, fmt::format(text, std::forward<Args>(args)...));
}

// "No such file or directory" for errno values, thread safe.
std::string errno_text(int err);

// Sets the sentence that xio_last_error() returns in this thread, until the process ends; cut after 4 KiB.
void set_last_error(std::string_view sentence) noexcept;
const char* last_error() noexcept;

// Called from a catch block: keeps the sentence of the exception in flight and gives its status.
xio_status_t status_of_current_exception() noexcept;

// Runs body. Returns its text, or the sentence of the error that it throws.
template <class Body>
std::string sentence_from(Body&& body) {
  try {
    return body();
  } catch (const error& e) {
    return e.what();
  }
}

// Runs body at the C boundary.
template <class Body>
xio_status_t guard(Body&& body) noexcept {
  try {
    body();
    return XIO_OK;
  } catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace xio
