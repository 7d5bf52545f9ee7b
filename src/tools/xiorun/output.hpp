// SPDX-License-Identifier: MIT
// What a PE writes, passed on line by line with its number in front.
#pragma once
#include <string>

#include "base/unique_fd.hpp"
#include "tools/xiorun/sink.hpp"

namespace xio::run {

class tagged_output {
 public:
  tagged_output(int pe, int from, sink& to);  // reads from `from`, which it owns

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
  void write_lines(std::size_t looked_at, bool all);

  std::string tag_, line_;
  unique_fd from_;
  sink* to_;
  bool ended_ = false;
};

}  // namespace xio::run
