// SPDX-License-Identifier: MIT
// What a stage has found, row by row, in a file that its parent reads: a line of JSON for each row, so that what was
// found before a crash or a deadline is not lost.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "base/unique_fd.hpp"

namespace xio::verify {

using json = nlohmann::ordered_json;

class row_writer {
 public:
  // The file must be there. Throws XIO_ERR_IO.
  explicit row_writer(const std::string& file);
  void add(const json& row);

 private:
  std::string file_;
  unique_fd fd_;
};

// The rows in a file; a line that is not whole, or is no object, is left out. Nothing is there: no rows.
json read_rows(const std::string& file);

}  // namespace xio::verify
