// SPDX-License-Identifier: MIT
#include "tools/result_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace xio::tools {
namespace {

using json = nlohmann::ordered_json;

// Four significant digits, and never less than stands before the point.
std::string text_of(double v) {
  int digits = 3;
  for (double size = v < 0 ? -v : v; digits > 0 && size >= 10; size /= 10) --digits;
  for (double size = v < 0 ? -v : v; digits < 9 && size > 0 && size < 1; size *= 10) ++digits;
  return fmt::format("{:.{}f}", v, digits);
}

std::string text_of(const cell& c) {
  if (const auto* s = std::get_if<std::string>(&c)) return *s;
  if (const auto* n = std::get_if<std::uint64_t>(&c)) return std::to_string(*n);
  if (const auto* d = std::get_if<double>(&c)) return text_of(*d);
  return "";
}

std::string csv_of(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

json json_of(const cell& c) {
  if (const auto* s = std::get_if<std::string>(&c)) return *s;
  if (const auto* n = std::get_if<std::uint64_t>(&c)) return *n;
  if (const auto* d = std::get_if<double>(&c)) return *d;
  return nullptr;
}

}  // namespace

struct result_table::state {
  table_format format;
  facts about;
  std::FILE* to;
  std::size_t columns;
  std::vector<std::string> left_out;
  bool fine = true, begun = false;
  json rows = json::array();

  void write(const std::string& text) {
    fine = std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0 && fine;
  }

  // Columns are as wide as their heads, and wide enough for what usually stands there.
  static std::size_t width_of(const field& f) {
    return std::max<std::size_t>({f.name.size(), f.width, std::holds_alternative<std::string>(f.is) ? 6u : 8u});
  }

  bool is_shown(const field& f) const { return f.in_table && std::ranges::find(left_out, f.name) == left_out.end(); }

  void choose_columns(const std::vector<field>& row) {
    for (;;) {
      std::size_t width = 0;
      const field* next = nullptr;
      for (const field& f : row) {
        if (!is_shown(f)) continue;
        width += width_of(f) + (width == 0 ? 0 : 2);
        if (f.leaves != 0 && (next == nullptr || f.leaves < next->leaves)) next = &f;
      }
      if (columns == 0 || width <= columns || next == nullptr) return;
      left_out.push_back(next->name);
    }
  }

  void table_row(const std::vector<field>& row, bool head) {
    std::string line;
    for (const field& f : row) {
      if (!is_shown(f)) continue;
      const std::string text = head ? f.name : text_of(f.is);
      line += std::holds_alternative<std::string>(f.is) ? fmt::format("{:<{}}  ", text, width_of(f))
                                                        : fmt::format("{:>{}}  ", text, width_of(f));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    write(line + "\n");
  }

  void csv_row(const std::vector<field>& row, bool head) {
    std::string line;
    for (const field& f : row) line += (line.empty() ? "" : ",") + csv_of(head ? f.name : text_of(f.is));
    for (const auto& [name, is] : about) line += "," + csv_of(head ? name : is);
    write(line + "\n");
  }

  void begin_table(const std::vector<field>& row) {
    choose_columns(row);
    for (const auto& [name, is] : about)
      if (!is.empty()) write(fmt::format("# {}: {}\n", name, is));
    std::string more;
    for (const std::string& name : left_out) more += " " + name;
    if (!more.empty()) write("# --wide has more:" + more + "\n");
  }
};

result_table::result_table(table_format format, facts about, std::FILE* to, std::size_t columns)
    : state_(std::make_unique<state>()) {
  state_->format = format;
  state_->about = std::move(about);
  state_->to = to;
  state_->columns = columns;
}

result_table::~result_table() = default;

void result_table::add(const std::vector<field>& row) {
  state& s = *state_;
  if (s.format == table_format::json) {
    json one = json::object();
    for (const field& f : row) one[f.name] = json_of(f.is);
    s.rows.push_back(std::move(one));
    return;
  }
  const bool csv = s.format == table_format::csv;
  if (!s.begun && !csv) s.begin_table(row);
  for (const bool head : {true, false})
    if (!head || !s.begun) csv ? s.csv_row(row, head) : s.table_row(row, head);
  s.begun = true;
}

std::string result_table::rows() const { return state_->rows.dump(-1, ' ', false, json::error_handler_t::replace); }

void result_table::replace_rows(const std::vector<std::string>& by_pe) {
  state_->rows = json::array();
  for (std::size_t pe = 0; pe < by_pe.size(); ++pe)
    for (json& row : json::parse(by_pe[pe])) {
      row["pe"] = pe;
      state_->rows.push_back(std::move(row));
    }
}

bool result_table::finish() {
  state& s = *state_;
  if (s.format == table_format::json) {
    json all = json::object();
    for (const auto& [name, is] : s.about) all[name] = is;
    all["results"] = std::move(s.rows);
    s.write(all.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }
  return s.fine;
}

}  // namespace xio::tools
