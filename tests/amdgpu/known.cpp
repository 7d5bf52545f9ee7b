// SPDX-License-Identifier: MIT
// known FILE...: which instructions of code objects the interpreter does not know, with how often each stands there and
// one example. Bundles of HIP are opened. XIO_AMDGPU_TARGET names another GPU than gfx90a. The exit status is 1 if
// there is any.
#include <cstdio>

#include "amdgpu/code_object.hpp"
#include "amdgpu/isa/decode.hpp"
#include "amdgpu/isa/disassembler.hpp"

namespace {

using namespace amdgpu;

target wanted() {
  const char* const name = std::getenv("XIO_AMDGPU_TARGET");
  return target_of(name == nullptr ? "" : name);
}

disassembler& reader() { return disassembler::of(wanted()); }

struct unknown {
  unsigned long count = 0;
  std::string example;
};

// An instruction is unknown if no table has it: its handler is that of all refused instructions.
bool is_known(const std::string& text, const std::uint32_t* words, unsigned bytes) {
  static const std::uint32_t none[3] = {0, 0, 0};
  static const handler refused = make_operation("no_such_instruction", none, 4).run;
  return make_operation(text, words, bytes, wanted()).run != refused;
}

unsigned long read_section(const std::uint8_t* start, std::uint64_t left, std::map<std::string, unknown>& found) {
  unsigned long read = 0;
  std::string text;
  for (std::uint64_t used = 0; left >= 4; start += used, left -= used) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(start);
    used = reader().read(words, left, 0, text);
    if (used == 0) {  // padding, or data
      used = 4;
      continue;
    }
    ++read;
    if (is_known(text, words, static_cast<unsigned>(used))) continue;
    unknown& u = found[text.substr(0, text.find(' '))];
    ++u.count;
    u.example = text;
  }
  return read;
}

}  // namespace

int main(int count, char** names) {
  if (!reader().broken().empty()) {
    std::fprintf(stderr, "known: %s\n", reader().broken().c_str());
    return 2;
  }
  std::map<std::string, unknown> found;
  unsigned long read = 0;
  for (int i = 1; i < count; ++i) {
    try {
      test::buffers unused;
      const test::code_object code(test::code_object::read(names[i]), unused);
      code.each_text(
          [&](const std::uint8_t* start, std::uint64_t bytes) { read += read_section(start, bytes, found); });
    } catch (const std::exception& e) {
      std::fprintf(stderr, "known: %s: %s\n", names[i], e.what());
      return 2;
    }
  }
  for (const auto& [name, u] : found) std::printf("%8lu %s, as in: %s\n", u.count, name.c_str(), u.example.c_str());
  std::printf("%lu instructions, %zu kinds not known\n", read, found.size());
  return found.empty() ? 0 : 1;
}
