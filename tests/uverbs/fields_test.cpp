// SPDX-License-Identifier: MIT
// Compares the firmware's fields with the kernel's own header: fields_test mlx5_ifc.h. Every field of the table must be
// there at the same place and of the same width; those that are DEVX's alone must lie in reserved bits.
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "uverbs/firmware/fields.hpp"

namespace {

struct member {
  std::string name, nested;  // nested: its structure, or empty
  std::uint32_t count;       // bits, or elements; 0 for a list without end
  std::uint32_t width;       // of an element
};
using structures = std::map<std::string, std::vector<member>>;

// Structures with unions are left out: no field of the table is in one.
structures parse(std::istream& in) {
  static const std::regex begin(R"(^struct mlx5_ifc_(\w+)_bits \{)");
  static const std::regex bits(R"(^\s*u8\s+(\w+)\[(\w*)\](?:\[(\w+)\])?;)");
  static const std::regex inner(R"(^\s*struct mlx5_ifc_(\w+)_bits\s+(\w+);)");
  structures out;
  std::vector<member>* open = nullptr;
  std::smatch m;
  const auto number = [](const std::string& s) {
    return s.empty() ? 0u : static_cast<std::uint32_t>(std::stoul(s, nullptr, 0));
  };
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, m, begin))
      open = &out[m[1]];
    else if (line.starts_with("};"))
      open = nullptr;
    else if (open != nullptr && std::regex_search(line, m, bits))
      open->push_back({m[1], "", number(m[2]), m[3].matched ? number(m[3]) : 1});
    else if (open != nullptr && std::regex_search(line, m, inner))
      open->push_back({m[2], m[1], 1, 0});
  }
  return out;
}

std::uint32_t bits_of(const structures& all, const std::string& name);
std::uint32_t bits_of(const structures& all, const member& m) {
  return m.nested.empty() ? m.count * m.width : bits_of(all, m.nested);
}
std::uint32_t bits_of(const structures& all, const std::string& name) {
  std::uint32_t sum = 0;
  for (const member& m : all.at(name)) sum += bits_of(all, m);
  return sum;
}

std::string check(const structures& all, const uverbs::firmware::field& f) {
  const auto found = all.find(f.structure);
  if (found == all.end()) return "no such structure";
  std::uint32_t at = 0;
  for (const member& m : found->second) {
    const std::uint32_t bits = bits_of(all, m);
    const bool inside = f.at >= at && f.at + f.bits <= at + bits;
    // Linux 6.1 leaves some of these reserved that 6.12 names.
    const bool the_same = m.name == f.name && at == f.at && bits == f.bits;
    if (f.is_for_users && inside) return m.name.starts_with("reserved") || the_same ? "" : "lies in " + m.name;
    if (!f.is_for_users && m.name == f.name) {
      std::ostringstream text;
      text << std::hex << "the header has it at 0x" << at << " with 0x" << bits << " bits";
      return at == f.at && bits == f.bits ? "" : text.str();
    }
    at += bits;
  }
  return f.is_for_users ? "lies in no single reserved run" : "no such field";
}

}  // namespace

int main(int argc, char** argv) {
  std::ifstream in(argc > 1 ? argv[1] : "");
  if (!in) {
    std::cerr << "give the path of mlx5_ifc.h\n";
    return 2;
  }
  const structures all = parse(in);
  int wrong = 0;
  for (const auto& f : uverbs::firmware::all_fields())
    if (const std::string why = check(all, f); !why.empty()) {
      std::cerr << f.structure << '.' << f.name << ": " << why << '\n';
      ++wrong;
    }
  std::cout << uverbs::firmware::all_fields().size() << " fields compared, " << wrong << " differ\n";
  return wrong != 0;
}
