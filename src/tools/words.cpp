// SPDX-License-Identifier: MIT
#include "tools/words.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace xio::tools {

std::vector<std::string> split(const std::string& list, char separator) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= list.size();) {
    const auto end = std::min(list.find(separator, from), list.size());
    words.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return words;
}

// access(2) alone would take a folder, which may be searched, for a program.
bool can_run(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string find_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin", ':'))
    if (const auto full = (folder.empty() ? "." : folder) + "/" + program; can_run(full)) return full;
  return "";
}

std::string utc_now(const char* format) {
  const std::time_t t = std::time(nullptr);
  std::tm utc{};
  char text[64] = "";
  if (gmtime_r(&t, &utc) != nullptr) std::strftime(text, sizeof text, format, &utc);
  return text;
}

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& one : words) all.push_back(const_cast<char*>(one.c_str()));
  all.push_back(nullptr);
  return all;
}

}  // namespace xio::tools
