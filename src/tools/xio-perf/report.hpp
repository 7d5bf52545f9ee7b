// SPDX-License-Identifier: MIT
// The report of results: the machine that they were measured on, what carried each, and the picture of them.
#pragma once
#include "tools/result_table.hpp"
#include "tools/xio-perf/measure.hpp"

namespace xio::perf {

// Version, machine, platform, GPU, PEs, and when.
tools::facts facts_of(const machine_shape& m, int n_pes);

// Names the engine that carries a route, and says whether software stands in for a device in it.
struct carrier {
  std::string backend;
  bool emulated;
};
carrier carrier_of(const std::string& route, const machine_shape& m);

// The columns that all rows of a table share: they follow from all that will be measured.
struct table_shape {
  bool message_rate = false;
  std::size_t test_width = 0;
  std::size_t op_width = 0;  // 0: no atomics, no column
  std::size_t bytes_width = 0;
  bool teams = false;        // of several sizes
  bool collectives = false;  // their columns stand in the table, and the others' leave first
};
table_shape shape_of(const std::vector<plan>& all, bool message_rate);

std::vector<tools::field> row_of(const plan& p, const result& r, const machine_shape& m, const table_shape& t);

// Curves of tests over sizes: medians and p99 of times, or bandwidths if all are tests of bandwidth.
class plotter {
 public:
  void add(const plan& p, const result& r);
  // about: stands in the title.
  void draw(const std::string& file, const tools::facts& about, bool emulated) const;

 private:
  struct line {
    std::string name;
    bool bandwidth;
    std::vector<result> results;
  };
  std::vector<line> lines_;
};

}  // namespace xio::perf
