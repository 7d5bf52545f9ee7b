// SPDX-License-Identifier: MIT
// Files of text that each PE of a world writes.
#pragma once
#include <string>

namespace xio {

// "%p" in a name is the PE's number; without it, ".PE" comes behind where there are several.
std::string pe_file(std::string name, int pe, int n_pes);

// Readers find the old text or the new one. A name that is of no file, and a file that begins with another character,
// stay. Returns why the file is as before, or "".
std::string replace_file(const std::string& name, const std::string& text);

}  // namespace xio
