// SPDX-License-Identifier: MIT
// A file that a tool writes. It has no name until it is whole and synced, so nothing of it stays if the tool is killed,
// and it takes the place of a regular file alone: mode and owner of that one stay, and of a link what it leads to is
// replaced. A device or FIFO is written as what it is.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <string>

#include "base/unique_fd.hpp"

namespace xio::tools {

class new_file {
 public:
  // what: the option, for sentences. Throws, and leaves everything as it was, if it cannot be made.
  new_file(std::string what, std::string path);
  ~new_file();  // without keep(): as if nothing had been written
  new_file& operator=(new_file&&) = delete;

  void write(const void* data, std::size_t bytes);
  std::size_t bytes() const;
  // By which other processes of this user write it.
  std::string link() const;
  // It is whole. Throws if it could not be synced or get its name, and then nothing is left of it.
  void keep();

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void find_place();
  void open_stream();
  void make();
  void keep_owner();
  bool put_in_place();

  std::string what_, path_, place_, folder_;  // as it was given; without links; where it is
  struct stat old_ {};
  bool exists_ = false, stream_ = false;
  mode_t mode_ = 0;
  unique_fd fd_;
};

}  // namespace xio::tools
