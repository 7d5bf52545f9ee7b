// SPDX-License-Identifier: MIT
// relay's files. The copy gets its name only when it is whole.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "../check.hpp"

inline uint64_t size_of(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0) leave(1, "relay: cannot read '%s': give an existing file with --in", path.c_str());
  if (!S_ISREG(st.st_mode)) leave(1, "relay: '%s' is not a regular file; give one with --in", path.c_str());
  return static_cast<uint64_t>(st.st_size);
}

inline std::string part_of(const std::string& out) { return out + ".part"; }

inline void make_empty(const std::string& path) {
  FILE* empty = std::fopen(path.c_str(), "w");
  if (empty == nullptr || std::fclose(empty) != 0) leave(1, "relay: cannot create '%s'", path.c_str());
}

inline void settle(const std::string& out, bool whole) {
  const std::string part = part_of(out);
  if (!whole) {
    unlink(part.c_str());
  } else if (rename(part.c_str(), out.c_str()) != 0) {
    leave(1, "relay: cannot rename '%s' to '%s'", part.c_str(), out.c_str());
  }
}
