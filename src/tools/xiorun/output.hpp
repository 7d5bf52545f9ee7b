// SPDX-License-Identifier: MIT
// What a PE writes, passed on line by line with its number or nothing in front.
#pragma once
#include <functional>

#include "tools/xiorun/sink.hpp"

namespace xio::run {

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
