// SPDX-License-Identifier: MIT
#include "tools/xiorun/program.hpp"

#include <filesystem>
#include <stdexcept>

#include "tools/words.hpp"

namespace xio::run {

std::string find_program(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  const std::string found = is_path ? tools::can_run(name) ? name : "" : tools::find_on_path(name);
  if (!found.empty()) return found;
  std::error_code error;
  if (is_path && std::filesystem::is_directory(name, error))
    throw std::invalid_argument("the program '" + name + "' is a folder; give the path of a program in it");
  throw std::invalid_argument("the program '" + name +
                              "' was not found or is not executable; give its path or extend PATH");
}

}  // namespace xio::run
