// SPDX-License-Identifier: MIT
// What PEs write, and where it goes.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace xio::run {

// Where xiorun writes. Keeps what the reader does not take yet: a reader may stand still, xiorun may not, as time-outs
// and signals go on.
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

// Passes on what a PE writes, line by line with its number or nothing in front.
class tagged_output {
 public:
  // Reads from `from`, which it owns. The tag goes before every line. Lines for which `keeps` returns true are not
  // passed on.
  using line_filter = std::function<bool(std::string_view line)>;
  tagged_output(std::string tag, int from, sink& to, line_filter keeps = {});

  int fd() const { return from_.get(); }
  // The PE waits as long as what it wrote before has not gone on: nothing is lost, and no more kept than a pipe holds.
  bool may_pass_on() const { return to_->waiting() == 0; }
  // Passes on what is there.
  void pass_on();
  // The PE has closed its end, and all is passed on.
  bool ended() const { return ended_; }
  bool reader_gone() const { return to_->reader_gone(); }

 private:
  std::string tagged(std::size_t from, std::size_t length) const;
  line_filter keeps_;
  void write_lines(std::size_t looked_at, bool all);

  std::string tag_, line_;
  unique_fd from_;
  sink* to_;
  bool ended_ = false;
};

}  // namespace xio::run
