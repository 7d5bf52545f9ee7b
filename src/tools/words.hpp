// SPDX-License-Identifier: MIT
// Lists of words, programs of PATH and texts of the time, as the tools have them.
#pragma once
#include <string>
#include <vector>

namespace xio::tools {

// The words between the separators, empty ones too.
std::vector<std::string> split(const std::string& list, char separator = ',');

// The path of a program in the folders of PATH, or empty.
std::string find_on_path(const std::string& program);

// Whether it is a file that may be executed.
bool can_run(const std::string& path);

// Now, in UTC, by a format of strftime(3).
std::string utc_now(const char* format);

// As exec wants words: as long as they live.
std::vector<char*> pointers_to(const std::vector<std::string>& words);

}  // namespace xio::tools
