// SPDX-License-Identifier: MIT
// What a PE writes, passed on line by line with its number in front.
#pragma once
#include <string>

namespace xio::run {

class tagged_output {
 public:
  tagged_output(int pe, int from, int to);  // reads from `from`, which it owns; writes to `to`
  tagged_output(tagged_output&& other) noexcept;
  tagged_output& operator=(tagged_output&&) = delete;
  ~tagged_output();

  int fd() const { return from_; }
  // Passes on what is there. False when the PE has closed its end or nobody reads ours.
  bool pass_on();
  // True once writing has failed: whoever read xiorun's output is gone.
  bool reader_gone() const { return reader_gone_; }

 private:
  void write_lines(bool all);
  void write_line(const char* text, std::size_t length);

  std::string tag_, line_;
  int from_, to_;
  bool reader_gone_ = false;
};

}  // namespace xio::run
