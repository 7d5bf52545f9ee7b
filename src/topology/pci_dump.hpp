// SPDX-License-Identifier: MIT
// A file that `lspci -xxxx` wrote, checked, for libpci to read: its own reader trusts offsets and ends the process over
// what it does not understand.
#pragma once
#include <string>

#include "base/unique_fd.hpp"

namespace xio::topology {

// An unlinked file in memory that holds a checked copy, closed with this object.
class checked_dump {
 public:
  // Throws XIO_ERR_ARG naming file, line and what is wrong with it.
  explicit checked_dump(const std::string& file);

  std::string path() const;  // as long as this object lives

 private:
  unique_fd fd_;
};

}  // namespace xio::topology
