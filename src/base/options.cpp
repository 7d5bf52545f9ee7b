// SPDX-License-Identifier: MIT
#include "base/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <set>
#include <type_traits>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "config.h"

extern "C" char** environ;

namespace xio {
namespace {

constexpr const char* kind_named(std::string_view name) {
  for (const char* kind : {"SIZE", "UINT", "AUTO_UINT", "TEXT", "SECRET"})
    if (name == kind) return kind;
  return "CHOICE";
}

constexpr option_row k_rows[] = {
#define XIO_OPTION(group, field, variable, kind, fallback, limits, text) \
  {option_group::group, #field, variable, kind_named(#kind), fallback, limits, text},
#include "base/options.def"
};

static_assert(std::ranges::is_sorted(k_rows,
                                     [](const option_row& a, const option_row& b) { return a.group < b.group; }),
              "options.def has its groups one after the other");

// The words of a row are those of its enum, in the same order.
template <class T>
constexpr bool has_words_of([[maybe_unused]] std::string_view limits) {
  if constexpr (std::is_enum_v<T>) {
    const auto all = option::words(T{});
    return option::are_listed(all, limits);
  }
  return true;
}
#define XIO_OPTION(group, field, variable, kind, fallback, limits, text) \
  static_assert(has_words_of<option::kind>(limits), variable ": limits and words differ");
#include "base/options.def"

// A row stays here for one version after a variable got another name.
constexpr std::span<const renamed_variable> k_renamed;

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

void assign(const option_row&, const std::string& text, std::string& out) { out = text; }

template <class E>
requires std::is_enum_v<E>
void assign(const option_row& row, const std::string& text, E& out) { out = option::parse_word<E>(text, row.variable); }

void assign(const option_row&, std::string_view text, secret_text& out) { out = text; }

void assign(const option_row& row, const std::string& text, std::uint64_t& out) {
  out = std::strcmp(row.kind, "SIZE") == 0 ? parse_size(text, row.variable) : parse_uint(text, row.variable);
  check_range(row, out, text);
}

void assign(const option_row& row, const std::string& text, std::optional<std::uint64_t>& out) {
  out.reset();
  if (text == "auto") return;
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) fail(XIO_ERR_CONFIG, "{}='{}' is no number; use auto or one in {}", row.variable, text, row.limits);
  out = parse_uint(text, row.variable);
  check_range(row, *out, text);
}

// take(row, field) fills in each.
template <class Take>
options read(Take&& take) {
  options o;
  std::size_t i = 0;
#define XIO_OPTION(group, field, variable, kind, fallback, limits, text) take(k_rows[i++], o.field);
#include "base/options.def"
  return o;
}

// The value that `given` has for a row, or null: the last entry counts.
const char* find_given(const std::vector<setting>& given, const char* variable) {
  for (auto at = given.rbegin(); at != given.rend(); ++at)
    if (at->variable == variable) return at->value.c_str();
  return nullptr;
}

const char* value_of(const option_row& row, const std::vector<setting>& given) {
  const char* value = find_given(given, row.variable);
  if (value == nullptr) value = std::getenv(row.variable);
  return value != nullptr && *value != '\0' ? value : row.fallback;
}

template <class T>
void assign_value(const option_row& row, const std::vector<setting>& given, T& out) {
  assign(row, value_of(row, given), out);
}

// A string on the way would leave the secret behind.
void assign_value(const option_row& row, const std::vector<setting>& given, secret_text& out) {
  out = std::string_view(value_of(row, given));
}

const option_row* find_row(std::string_view variable) {
  const auto* row = std::ranges::find_if(k_rows, [&](const option_row& r) { return variable == r.variable; });
  return row == std::end(k_rows) ? nullptr : row;
}

const option_row& nearest_row(std::string_view variable) {
  return *std::ranges::min_element(k_rows, [&](const option_row& a, const option_row& b) {
    return edit_distance(variable, a.variable) < edit_distance(variable, b.variable);
  });
}

void refuse_renamed(std::string_view variable) {
  if (const std::string sentence = say_new_name(variable, k_renamed); !sentence.empty())
    fail(XIO_ERR_CONFIG, "{}", sentence);
}

// The executor of the host platform is one for all worlds of a process.
void check_given(const std::vector<setting>& given) {
  for (const setting& s : given) {
    refuse_renamed(s.variable);
    const option_row* row = find_row(s.variable);
    if (row == nullptr)
      fail(XIO_ERR_CONFIG, "'{}' is not a variable of XIO; did you mean {}?", s.variable,
           nearest_row(s.variable).variable);
    if (s.variable.starts_with("XIO_HOST_"))
      fail(XIO_ERR_CONFIG, "{} is of the process and not of one world; set it in the environment", s.variable);
  }
}

// XIO_RUN_* is how xiorun speaks to its children; XIO_TEST_* and XIO_AMDGPU_* belong to tests. XIO_LIBRARY and
// XIO_PYTHON_* are read by those that load libxio by its name.
bool is_meant_for_options(std::string_view variable) {
  if (!variable.starts_with("XIO_")) return false;
  for (const char* others : {"XIO_RUN_", "XIO_TEST_", "XIO_AMDGPU_", "XIO_LIBRARY", "XIO_PYTHON_"})
    if (variable.starts_with(others)) return false;
  return true;
}

// Those that are set and that no row names.
std::vector<std::string> unknown_variables() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (is_meant_for_options(name) && set_variable(name.c_str()) != nullptr && find_row(name) == nullptr)
      all.push_back(name);
  }
  return all;
}

void warn_of_unknown_variables() {
  // Worlds, links and first kernels read the environment in the thread that starts them, which may be any.
  static std::mutex lock;
  // Never destroyed: an exit handler may make a world.
  static auto& seen = *new std::set<std::string>;
  const std::lock_guard hold(lock);
  for (const std::string& name : unknown_variables())
    if (seen.insert(name).second)
      log::warn("{} is not a variable of XIO and is ignored; did you mean {}?", name, nearest_row(name).variable);
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

options options::from_environment(const std::vector<setting>& given) {
  check_given(given);
  for (const std::string& name : unknown_variables()) refuse_renamed(name);
  options o = read([&](const option_row& row, auto& out) { assign_value(row, given, out); });
  log::set_level(o.log_level);
  warn_of_unknown_variables();
  return o;
}

options options::right_values(const std::vector<setting>& given) {
  return read([&](const option_row& row, auto& out) {
    try {
      assign_value(row, given, out);
    } catch (const error&) {
      assign(row, row.fallback, out);
    }
  });
}

options options::defaults() {
  return read([](const option_row& row, auto& out) { assign(row, row.fallback, out); });
}

std::string say_new_name(std::string_view variable, std::span<const renamed_variable> renamed) {
  for (const renamed_variable& one : renamed)
    if (variable == one.before)
      return fmt::format("{} is called {} since XIO {}; set {} and unset {}", one.before, one.now, one.since, one.now,
                         one.before);
  return "";
}

const option_row* option_rows(std::size_t* count) {
  *count = std::size(k_rows);
  return k_rows;
}

}  // namespace xio
