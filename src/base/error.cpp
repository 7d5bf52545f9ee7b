// SPDX-License-Identifier: MIT
#include "base/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "xio/xio.h"

namespace xio {
namespace {

// Bytes without a destructor: exit handlers and destructors of static objects call XIO after those of thread_local
// objects have run.
constexpr std::size_t k_longest = 4096;
thread_local char t_last_error[k_longest];

}  // namespace

std::string errno_text(int err) {
  char text[128];
  // The GNU form of strerror_r returns a pointer, which need not be `text`.
  return strerror_r(err, text, sizeof text);
}

void set_last_error(std::string_view sentence) noexcept {
  constexpr std::string_view k_cut = "...";
  const std::size_t bytes = std::min(sentence.size(), k_longest - 1);
  std::memmove(t_last_error, sentence.data(), bytes);
  t_last_error[bytes] = '\0';
  if (bytes != sentence.size()) k_cut.copy(t_last_error + bytes - k_cut.size(), k_cut.size());
}

const char* last_error() noexcept { return t_last_error; }

namespace {
// In a catch block of a noexcept function: what has no memory for its sentence says less.
void set_unexpected(const char* what) noexcept {
  try {
    set_last_error(fmt::format("unexpected error: {}; this is a bug of XIO, please report it", what));
  } catch (...) {
    set_last_error(what);
  }
}
}  // namespace

xio_status_t status_of_current_exception() noexcept {
  try {
    throw;
  } catch (const error& e) {
    set_last_error(e.what());
    return e.status();
  } catch (const std::bad_alloc&) {
    set_last_error("host memory is exhausted; free some or lower XIO_HEAP_SIZE");
    return XIO_ERR_NO_MEMORY;
  } catch (const std::exception& e) {
    set_unexpected(e.what());
    return XIO_ERR_INTERNAL;
  } catch (...) {
    set_last_error("unexpected error of unknown type; this is a bug of XIO, please report it");
    return XIO_ERR_INTERNAL;
  }
}

}  // namespace xio
