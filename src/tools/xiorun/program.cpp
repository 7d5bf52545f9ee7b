// SPDX-License-Identifier: MIT
#include "tools/xiorun/program.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace xio::run {
namespace {

mode_t kind_of(const std::string& path) {
  struct stat s;
  return stat(path.c_str(), &s) == 0 ? s.st_mode & S_IFMT : 0;
}

// access(2) alone would take a folder, which may be searched, for a program.
bool can_run(const std::string& path) { return kind_of(path) == S_IFREG && access(path.c_str(), X_OK) == 0; }

std::string look_up(const std::string& name) {
  if (name.find('/') != std::string::npos) return can_run(name) ? name : "";
  const char* path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t from = 0; from <= rest.size();) {
    const auto colon = std::min(rest.find(':', from), rest.size());
    const auto folder = rest.substr(from, colon - from);
    const auto full = (folder.empty() ? "." : folder) + "/" + name;
    if (can_run(full)) return full;
    from = colon + 1;
  }
  return "";
}

}  // namespace

std::string find_program(const std::string& name) {
  const std::string found = look_up(name);
  if (!found.empty()) return found;
  if (name.find('/') != std::string::npos && kind_of(name) == S_IFDIR)
    throw std::invalid_argument("the program '" + name + "' is a folder; give the path of a program in it");
  throw std::invalid_argument("the program '" + name +
                              "' was not found or is not executable; give its path or extend PATH");
}

}  // namespace xio::run
