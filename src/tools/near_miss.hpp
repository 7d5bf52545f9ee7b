// SPDX-License-Identifier: MIT
// The word that was probably meant, for messages about words that are not known.
#pragma once
#include <string>
#include <vector>

namespace xio::tools {

// The nearest of `known`, or empty if none is near: at most a third of the letters differ, and never more than three.
// Letters behind a '=' are not compared. A known word that begins with what was given is near, too.
std::string near_miss(const std::string& given, const std::vector<std::string>& known);

// "; did you mean --json?", or empty.
std::string did_you_mean(const std::string& given, const std::vector<std::string>& known);

}  // namespace xio::tools
