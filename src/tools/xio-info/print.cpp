// SPDX-License-Identifier: MIT
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/xio-info/section.hpp"

namespace xio::info {
namespace {

using json = nlohmann::ordered_json;

std::string text_of(const value& v) {
  if (const bool* b = std::get_if<bool>(&v)) return *b ? "yes" : "no";
  if (const auto* n = std::get_if<std::uint64_t>(&v)) return std::to_string(*n);
  return std::get<std::string>(v);
}

json json_of(const value& v) {
  return std::visit([](const auto& is) { return json(is); }, v);
}

}  // namespace

std::string as_text(const std::vector<section>& sections) {
  std::string out;
  for (const section& s : sections) {
    std::size_t width = 0;
    for (const row& r : s.rows) width = std::max(width, r.name.size());
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", s.title);
    for (const row& r : s.rows)
      out += fmt::format("  {:<{}}  {}{}\n", r.name, width, text_of(r.is), r.note.empty() ? "" : " (" + r.note + ")");
  }
  return out;
}

std::string as_json(const std::vector<section>& sections) {
  json all = json::object();
  for (const section& s : sections) {
    json& here = all[s.name] = json::object();
    for (const row& r : s.rows) {
      here[r.name] = json_of(r.is);
      if (!r.note.empty()) here[r.name + "_note"] = r.note;
    }
  }
  return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace xio::info
