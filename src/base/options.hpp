// SPDX-License-Identifier: MIT
// Typed view of the environment, made from options.def.
#pragma once
#include <cstdint>
#include <string>

#include "base/secret_text.hpp"

namespace xio {

namespace option_type {
using CHOICE = std::string;
using TEXT = std::string;
using SIZE = std::uint64_t;
using UINT = std::uint64_t;
using SECRET = secret_text;
}  // namespace option_type

// The environment's variable; null if it is not set or empty, which counts as that.
const char* set_variable(const char* name);

struct options {
#define XIO_OPTION(field, variable, kind, fallback, limits, text) option_type::kind field{};
#include "base/options.def"
#undef XIO_OPTION

  // Reads and checks every variable; throws XIO_ERR_CONFIG with variable, value, and what is allowed.
  // From then on the log is as its level says. A set XIO_ variable that no row names is reported once as a warning with
  // the nearest name.
  static options from_environment();

  // The same, but each variable that is wrong is as if it were not set, and nothing is reported; for what has to go on
  // after from_environment threw.
  static options right_values();

  // Defaults only; for tests and tools.
  static options defaults();
};

// One row of the table, for printing.
struct option_row {
  const char* field;
  const char* variable;
  const char* kind;
  const char* fallback;
  const char* limits;
  const char* text;
};
const option_row* option_rows(std::size_t* count);

// "64k" -> 65536; throws XIO_ERR_CONFIG naming `what`. k, M, G, T are powers of 1024.
std::uint64_t parse_size(const std::string& text, const std::string& what);

}  // namespace xio
