// SPDX-License-Identifier: MIT
// A file that `lspci -xxxx` wrote, checked, for libpci to read: its own reader trusts offsets and ends the process over
// what it does not understand.
#pragma once
#include <string>

namespace xio::topology {

// An unlinked file in memory that holds a checked copy, closed with this object.
class checked_dump {
 public:
  // Throws XIO_ERR_ARG naming file, line and what is wrong with it.
  explicit checked_dump(const std::string& file);
  ~checked_dump();
  checked_dump(const checked_dump&) = delete;
  checked_dump& operator=(const checked_dump&) = delete;

  std::string path() const;  // as long as this object lives

 private:
  int fd_ = -1;
};

}  // namespace xio::topology
