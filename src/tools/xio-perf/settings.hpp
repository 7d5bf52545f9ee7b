// SPDX-License-Identifier: MIT
// What the command line asks for.
#pragma once
#include <optional>

#include "tools/result_table.hpp"
#include "tools/xio-perf/work.hpp"

namespace xio::perf {

constexpr std::uint64_t k_most_bytes = std::uint64_t{4} << 30;

// 0 and empty stand for a default that suits test and platform.
struct settings {
  std::vector<const test*> tests;
  bool all = false;                  // `all` was asked for: a test or a size that cannot be is left out, not refused
  std::vector<std::uint64_t> sizes;  // --sizes, rising; if empty, the next three say them
  std::uint64_t smallest = 0;        // -b
  std::uint64_t largest = 0;         // -e
  std::uint64_t factor = 2;          // -f
  std::uint32_t iterations = 0;
  std::optional<std::uint32_t> warm_up;
  std::uint32_t repeat = 0;  // launches of a bandwidth test
  std::uint32_t ctas = 0, threads = 0;
  std::vector<scope> scopes;
  std::uint32_t element = 8;
  bool floating = false;  // the values are of a floating-point type
  std::vector<atomic_op> atomics;
  std::optional<xio_reduction> reduction;  // -o
  std::vector<std::uint32_t> teams;        // --team: members
  std::optional<bool> reads;               // --dir
  bool bidirectional = false, message_rate = false, lockstep = false;
  xio_route_t route = XIO_ROUTE_AUTO;
  std::string storage;
  bool scattered = false;  // --access
  bool i_know = false, direct = false;
  tools::table_format format = tools::table_format::table;
  bool wide = false;  // the table has all its columns, also beyond 80 characters
  std::string plot;
};

const char* name_of(scope s);
const char* name_of(atomic_op op);
const char* name_of(xio_reduction op);
bool fetches(atomic_op op);

// Returns the status to exit with, or nothing where the program goes on.
std::optional<int> parse(int argc, char** argv, settings& s);

}  // namespace xio::perf
