// SPDX-License-Identifier: MIT
// The first line or word of a small file, as the kernel shows values in sysfs and proc, and what its folders and links
// have; empty where that cannot be read.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace xio {

inline std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

inline std::string first_word(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

// By name.
inline std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    all.push_back(at->path());
  std::ranges::sort(all);
  return all;
}

// The last part of what it points to.
inline std::string target_of(const std::filesystem::path& link) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).filename().string();
}

}  // namespace xio
