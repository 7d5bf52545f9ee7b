// SPDX-License-Identifier: MIT
// Where xiorun writes. Keeps what the reader does not take yet: a reader may stand still, xiorun may not, as time-outs
// and signals go on.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace xio::run {

class sink {
 public:
  explicit sink(int fd);
  int fd() const { return own_ ? own_.get() : fd_; }

  void put(std::string_view text);  // writes what is taken now and keeps the rest
  void write_some();                // for when poll(2) says POLLOUT
  std::size_t waiting() const { return text_.size() - sent_; }
  void drop();
  // True once writing has failed: the reader is gone, or there is no room.
  bool reader_gone() const { return reader_gone_; }
  int error() const { return error_; }  // what writing failed with, or 0

 private:
  bool takes_some() const;
  std::size_t next_piece() const;

  int fd_;
  unique_fd own_;
  std::string text_;
  std::size_t sent_ = 0;
  bool reader_gone_ = false;
  int error_ = 0;
};

// Whether what is written to one comes out where the other's does, as after 2>&1.
bool same_file(int one, int other);

}  // namespace xio::run
