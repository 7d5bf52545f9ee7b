// SPDX-License-Identifier: MIT
// Results as a table for people, as CSV and as JSON: rows of the same fields, and facts that hold for all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace xio::tools {

// monostate: nothing to say; an empty cell, null in JSON.
using cell = std::variant<std::monostate, std::string, std::uint64_t, double>;

struct field {
  std::string name;  // "median_us": head of the column, key of the JSON
  cell is;
  bool in_table = true;   // false: a detail for programs; the same in every row
  std::size_t width = 0;  // of its column in a table, at least; the same in every row
  unsigned leaves = 0;    // a table that is too wide goes without it, with 1 first; 0: it stays
};

using facts = std::vector<std::pair<std::string, std::string>>;

enum class table_format { table, csv, json };

// A table says above its rows which columns it goes without. Rows come out as they are added, but for JSON, which is
// one object: {facts..., "results": [rows]}. A table begins with a line "# name: value" for each fact; CSV (RFC 4180)
// has them as its last columns.
class result_table {
 public:
  // columns: a table is to fit them; 0: it may be as wide as it is.
  result_table(table_format format, facts about, std::FILE* to, std::size_t columns = 0);
  ~result_table();
  result_table& operator=(result_table&&) = delete;

  void add(const std::vector<field>& row);  // the same names in every row
  // Of JSON: the rows so far as text, and such rows of several PEs in their place, each with its PE as `pe`.
  std::string rows() const;
  void replace_rows(const std::vector<std::string>& by_pe);
  // Writes what is left. False if anything could not be written.
  bool finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace xio::tools
