// SPDX-License-Identifier: MIT
// The environment's variables: the table of src/base/options.def, printed.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/xio-info/section.hpp"

namespace xio::info {
namespace {

const char* name_of(option_group g) {
  switch (g) {
    case option_group::user: return "user";
    case option_group::transport: return "transport";
    case option_group::test: break;
  }
  return "test";
}

const char* title_of(option_group g) {
  switch (g) {
    case option_group::user: return "what programs and users choose";
    case option_group::transport: return "how transports work";
    case option_group::test: break;
  }
  return "knobs for tests: software devices, the host platform, machines that are not here";
}

// Its value is printed nowhere.
bool is_secret(const option_row& r) { return std::strcmp(r.kind, "SECRET") == 0; }

// "CHOICE" with "auto|none" is printed as "auto|none", "UINT" with "1..8" as "number 1..8".
std::string type_of(const option_row& r) {
  if (std::strcmp(r.kind, "CHOICE") == 0) return r.limits;
  if (std::strcmp(r.kind, "AUTO_UINT") == 0) return fmt::format("auto, or number {}", r.limits);
  if (std::strcmp(r.kind, "TEXT") == 0 || is_secret(r)) return "text";
  return fmt::format("{} {}", std::strcmp(r.kind, "SIZE") == 0 ? "size" : "number", r.limits);
}

}  // namespace

std::string options_as_text() {
  std::size_t count = 0;
  const option_row* rows = option_rows(&count);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const option_row& r = rows[i];
    if (i == 0 || r.group != rows[i - 1].group)
      out += fmt::format("{}{}: {}\n", i == 0 ? "" : "\n", name_of(r.group), title_of(r.group));
    out += fmt::format("{} ({}; default {})\n    {}\n", r.variable, type_of(r),
                       r.fallback[0] == '\0' ? "empty" : r.fallback, r.text);
    const char* set = set_variable(r.variable);
    if (set != nullptr) out += fmt::format("    now: {}\n", is_secret(r) ? "set" : set);
  }
  return out;
}

std::string options_as_json() {
  std::size_t count = 0;
  const option_row* rows = option_rows(&count);
  auto all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < count; ++i) {
    const option_row& r = rows[i];
    nlohmann::ordered_json one{{"variable", r.variable}, {"group", name_of(r.group)}, {"type", r.kind},
                               {"allowed", r.limits},    {"default", r.fallback},     {"meaning", r.text}};
    const char* set = set_variable(r.variable);
    if (set != nullptr) one["now"] = is_secret(r) ? "set" : set;
    all.push_back(std::move(one));
  }
  return all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace xio::info
