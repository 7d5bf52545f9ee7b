// SPDX-License-Identifier: MIT
#include "base/crypto.hpp"

#include <sys/random.h>

#include <cerrno>

#include "base/error.hpp"

namespace xio::crypto {

void fill_random(void* to, std::size_t bytes) {
  auto* at = static_cast<unsigned char*>(to);
  while (bytes != 0) {
    const ssize_t n = getrandom(at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(XIO_ERR_UNSUPPORTED, "this machine has no source of random numbers: {}", errno_text(errno));
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

bool equal(const void* one, const void* other, std::size_t bytes) {
  const auto *a = static_cast<const volatile unsigned char*>(one),
             *b = static_cast<const volatile unsigned char*>(other);
  unsigned char differ = 0;
  for (std::size_t i = 0; i < bytes; ++i) differ = static_cast<unsigned char>(differ | (a[i] ^ b[i]));
  return differ == 0;
}

}  // namespace xio::crypto
