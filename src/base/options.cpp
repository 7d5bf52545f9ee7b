// SPDX-License-Identifier: MIT
#include "base/options.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

extern "C" char** environ;

namespace xio {

namespace {

constexpr option_row k_rows[] = {
#define XIO_OPTION(field, variable, kind, fallback, limits, text) {#field, variable, #kind, fallback, limits, text},
#include "base/options.def"
#undef XIO_OPTION
};

std::uint64_t parse_uint(const std::string& text, const std::string& what) {
  std::uint64_t value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || ec != std::errc() || end != text.data() + text.size())
    fail(XIO_ERR_CONFIG, "{}='{}' is not a whole number; give one such as 4096", what, text);
  return value;
}

void check_range(const option_row& row, std::uint64_t value, const std::string& text) {
  const std::string limits = row.limits;
  const auto dots = limits.find("..");
  if (dots == std::string::npos) return;
  const auto low = parse_size(limits.substr(0, dots), row.variable);
  const auto high = parse_size(limits.substr(dots + 2), row.variable);
  if (value < low || value > high)
    fail(XIO_ERR_CONFIG, "{}='{}' is outside {}; choose a value in that range", row.variable, text, limits);
}

void assign(const option_row& row, const std::string& text, std::string& out) {
  if (std::strcmp(row.kind, "CHOICE") == 0) {
    const std::string all = std::string("|") + row.limits + "|";
    if (text.empty() || text.find('|') != std::string::npos || all.find("|" + text + "|") == std::string::npos)
      fail(XIO_ERR_CONFIG, "{}='{}' is not known; use one of {}", row.variable, text, row.limits);
  }
  out = text;
}

void assign(const option_row&, std::string_view text, secret_text& out) { out = text; }

void assign(const option_row& row, const std::string& text, std::uint64_t& out) {
  out = std::strcmp(row.kind, "SIZE") == 0 ? parse_size(text, row.variable) : parse_uint(text, row.variable);
  check_range(row, out, text);
}

// take(row, field) fills in each.
template <class Take>
options read(Take&& take) {
  options o;
  std::size_t i = 0;
#define XIO_OPTION(field, variable, kind, fallback, limits, text) take(k_rows[i++], o.field);
#include "base/options.def"
#undef XIO_OPTION
  return o;
}

template <class T>
void assign_from_environment(const option_row& row, T& out) {
  const char* given = set_variable(row.variable);
  assign(row, given != nullptr ? given : row.fallback, out);
}

// A string on the way would leave the secret behind.
void assign_from_environment(const option_row& row, secret_text& out) {
  const char* given = std::getenv(row.variable);
  out = std::string_view(given != nullptr ? given : row.fallback);
}

void warn_of_unknown_variables() {
  // Worlds, links and first kernels read the environment in whichever thread they are started.
  static std::mutex lock;
  // Never destroyed: an exit handler may make a world.
  static auto& seen = *new std::set<std::string>;
  const std::lock_guard hold(lock);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (set_variable(name.c_str()) == nullptr) continue;
    // XIO_RUN_* is how xiorun speaks to its children; XIO_TEST_* belongs to test programs.
    if (name.rfind("XIO_", 0) != 0 || name.rfind("XIO_RUN_", 0) == 0 || name.rfind("XIO_TEST_", 0) == 0) continue;
    const option_row* nearest = nullptr;
    std::size_t best = SIZE_MAX;
    for (const auto& row : k_rows) {
      const std::size_t d = edit_distance(name, row.variable);
      if (d < best) best = d, nearest = &row;
    }
    if (best == 0 || !seen.insert(name).second) continue;
    log::warn("{} is not a variable of XIO and is ignored; did you mean {}?", name, nearest->variable);
  }
}

}  // namespace

const char* set_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::uint64_t parse_size(const std::string& text, const std::string& what) {
  std::uint64_t value = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  int shift = -1;
  if (unit.empty()) shift = 0;
  if (unit == "k" || unit == "K") shift = 10;
  if (unit == "m" || unit == "M") shift = 20;
  if (unit == "g" || unit == "G") shift = 30;
  if (unit == "t" || unit == "T") shift = 40;
  if (text.empty() || ec != std::errc() || shift < 0 || (shift > 0 && value >> (64 - shift) != 0))
    fail(XIO_ERR_CONFIG, "{}='{}' is not a size; give bytes such as 65536, 64k, 16M or 1G", what, text);
  return value << shift;
}

options options::from_environment() {
  options o = read([](const option_row& row, auto& out) { assign_from_environment(row, out); });
  log::set_level(o.log_level);
  warn_of_unknown_variables();
  return o;
}

options options::right_values() {
  return read([](const option_row& row, auto& out) {
    try {
      assign_from_environment(row, out);
    } catch (const error&) {
      assign(row, row.fallback, out);
    }
  });
}

options options::defaults() {
  return read([](const option_row& row, auto& out) { assign(row, row.fallback, out); });
}

const option_row* option_rows(std::size_t* count) {
  *count = std::size(k_rows);
  return k_rows;
}

}  // namespace xio
