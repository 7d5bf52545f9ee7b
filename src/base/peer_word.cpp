// SPDX-License-Identifier: MIT
#include "base/peer_word.hpp"

#include <cstddef>

namespace xio {
namespace {

unsigned byte_at(std::string_view text, std::size_t i) { return static_cast<unsigned char>(text[i]); }

// Bytes of the character at `at`, by the table of RFC 3629 section 4; 0 if there is none.
std::size_t character_bytes(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || bytes > text.size() - at) return 0;
  unsigned low = 0x80, high = 0xbf;  // of the second byte
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  for (std::size_t i = 1; i < bytes; ++i, low = 0x80, high = 0xbf)
    if (byte_at(text, at + i) < low || byte_at(text, at + i) > high) return 0;
  return bytes;
}

bool is_control(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && byte_at(text, at + 1) < 0xa0);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = character_bytes(text, at);
    if (bytes == 0 || is_control(text, at))
      out += '?';
    else
      out += text.substr(at, bytes);
    at += bytes == 0 ? 1 : bytes;
  }
  return out;
}

xio_status_t peer_status(std::int32_t number) {
  const bool is_error = number <= XIO_ERR_ARG && number >= XIO_ERR_INTERNAL;  // without a gap; see xio/status.h
  return is_error ? static_cast<xio_status_t>(number) : XIO_ERR_PEER;
}

}  // namespace xio
