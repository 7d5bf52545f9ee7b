// SPDX-License-Identifier: MIT
// Pages (wait_page.hpp) of the processes of this machine, as other processes find them.
#pragma once
#include <sys/types.h>

#include "base/unique_fd.hpp"
#include "ctx/wait_trace.hpp"

namespace xio::info {

// Of another process only what was checked is used: all of it may be wrong.
struct polled_page {
  pid_t pid;
  unique_fd file;
  ino_t inode;
  wait_page page{};
  // When a note was first written, and as it was last.
  std::map<wait_key, std::pair<std::uint64_t, dev::wait_note>> notes{};
  std::uint64_t replied = 0;  // before it was asked
  bool asked = false;

  bool read();
  static bool lasts(const std::pair<std::uint64_t, dev::wait_note>& n) { return n.second.now != n.first; }
  bool all_last() const;
  // Why it is left out, or "".
  std::string wrong() const;
  // Asks the process for its counts, without waiting; false where nobody would reply.
  bool ask();
  // Its reply, or "": nothing yet.
  std::string reply() const;
};

// The letter of a process's state and its parent; '\0' where it has ended.
std::pair<char, pid_t> stat_of(pid_t pid);

// which: the PID of a PE or of its ancestor, or "all", as the option was given. Throws.
std::vector<polled_page> open_pages(const std::string& option, const std::string& which);
// Why there are no pages.
std::string why_none(const std::string& which);

}  // namespace xio::info
