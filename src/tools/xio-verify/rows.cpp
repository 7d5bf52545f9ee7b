// SPDX-License-Identifier: MIT
#include "tools/xio-verify/rows.hpp"

#include <fcntl.h>

#include <cerrno>
#include <fstream>

#include "base/error.hpp"

namespace xio::verify {

row_writer::row_writer(const std::string& file)
    : file_(file), fd_(open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW)) {
  if (!fd_) fail(XIO_ERR_IO, "the file for results {} cannot be opened: {}", file, errno_text(errno));
}

// One write, for PEs share the file.
void row_writer::add(const json& row) {
  const std::string line = row.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  if (write(fd_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    fail(XIO_ERR_IO, "the file for results {} cannot be written: {}", file_, errno_text(errno));
}

json read_rows(const std::string& file) {
  json rows = json::array();
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    json row = json::parse(line, nullptr, false);
    if (row.is_object()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace xio::verify
