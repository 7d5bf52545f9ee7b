// SPDX-License-Identifier: MIT
#include "transport/nvme/file_name.hpp"

#include <algorithm>
#include <cctype>

#include "base/error.hpp"
#include "base/options.hpp"

namespace xio::nvme {
namespace {

bool is_settings(const std::string& text) {
  const auto end = std::ranges::find_if_not(text, [](unsigned char c) { return std::islower(c); });
  return text.empty() || (end != text.begin() && end != text.end() && *end == '=');
}

// "a ""b""" is a "b".
std::string unquoted(const std::string& text) {
  std::string out;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    out += text[i];
    if (text[i] == '"') ++i;
  }
  return out;
}

void set(file_name& out, const std::string& setting, const std::string& whole) {
  const std::size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals);
  if (equals == std::string::npos || (key != "block" && key != "size"))
    fail(XIO_ERR_ARG, "cannot open {}: \"{}\" is neither block=BYTES nor size=BYTES; write file:PATH?block=512&size=1G",
         whole, setting);
  std::uint64_t bytes = 0;
  try {
    bytes = parse_size(setting.substr(equals + 1), key);
  } catch (const error& e) {
    fail(XIO_ERR_ARG, "cannot open {}: {}", whole, e.what());
  }
  if (key == "size") {
    out.bytes = bytes;
    return;
  }
  if (bytes < 512 || bytes > 65536 || (bytes & (bytes - 1)) != 0)
    fail(XIO_ERR_ARG, "cannot open {} with blocks of {} bytes; use a power of two from 512 to 65536", whole, bytes);
  out.block_bytes = static_cast<std::uint32_t>(bytes);
}

}  // namespace

std::size_t end_of_quotes(const std::string& text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] != '"') continue;
    if (at + 1 == text.size() || text[at + 1] != '"') return at + 1;
    ++at;  // two of them are one of the path
  }
  return std::string::npos;
}

file_name parse_file_name(const std::string& rest, const std::string& whole) {
  file_name out{rest, 0, 0};
  std::size_t mark = rest.rfind('?');
  if (rest.starts_with('"')) {
    const std::size_t end = end_of_quotes(rest, 0);
    if (end == std::string::npos || (end != rest.size() && rest[end] != '?'))
      fail(XIO_ERR_ARG,
           "cannot open storage {}: its path begins with a quote; write file:\"PATH\" or file:\"PATH\"?block=512, and "
           "each quote in the path twice",
           whole);
    out.path = unquoted(rest.substr(0, end));
    mark = end == rest.size() ? std::string::npos : end;
    if (out.path.empty()) fail(XIO_ERR_ARG, "cannot open storage {}: there is no path after file:", whole);
    if (mark == std::string::npos) return out;
  } else {
    if (mark == std::string::npos || !is_settings(rest.substr(mark + 1))) return out;
    out.path = rest.substr(0, mark);
  }
  if (out.path.empty()) fail(XIO_ERR_ARG, "cannot open storage \"{}\": there is no path after file:", whole);
  for (std::size_t at = mark + 1; at < rest.size();) {
    const std::size_t end = std::min(rest.find('&', at), rest.size());
    set(out, rest.substr(at, end - at), whole);
    at = end + 1;
  }
  return out;
}

xio_storage_attr_t with_name(const file_name& name, xio_storage_attr_t attr) {
  if (name.block_bytes != 0) attr.block_bytes = name.block_bytes;
  if (name.bytes != 0) attr.bytes = name.bytes;
  return attr;
}

}  // namespace xio::nvme
