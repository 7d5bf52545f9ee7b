// SPDX-License-Identifier: MIT
// The first line or word of a small file, as the kernel shows values in sysfs and proc; empty where the file cannot be
// read.
#pragma once
#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace xio
