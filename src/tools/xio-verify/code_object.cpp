// SPDX-License-Identifier: MIT
#include "tools/xio-verify/code_object.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <istream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace xio::verify {
namespace {

// Finds where a compiler lost lanes in machine code for AMD GPUs (docs/decisions/0182-lost-lanes.md). Where lanes of a
// wave come together, a block begins with few lanes, or none, until `s_or exec` lets the others in. A vector register
// that is written in between keeps its old value in those others.
struct lost_lane {
  std::string function, place;  // place: "line 12" of a listing, "+0x1a8" of a function in a code object
  std::string written, join;    // the two instructions
};

struct machine_code {
  std::size_t instructions = 0, joins = 0;
  std::vector<lost_lane> lost;
};

using registers = std::set<std::string>;  // "v12", "a3", "s5"

// --- Text --------------------------------------------------------------------------------------------

constexpr std::size_t k_nowhere = ~std::size_t{0};

struct instruction {
  std::string name, operands;
  std::uint64_t place = 0;        // a line, or an address
  bool begins = false;            // a block in which lanes may come together
  std::size_t leads = k_nowhere;  // where a branch leads, in the function's body
};

struct function {
  std::string name;
  std::uint64_t address = 0;
  std::vector<instruction> body;
  std::map<std::string, std::size_t> labels;
};

bool is_branch(const instruction& i) { return i.name.starts_with("s_cbranch") || i.name == "s_branch"; }
bool never_goes_on(const instruction& i) {
  return i.name == "s_branch" || i.name == "s_endpgm" || i.name.starts_with("s_setpc");
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$'; }

// "name operands" without what stands around it.
instruction instruction_of(std::string_view text, std::uint64_t place) {
  const auto cut = [&](std::string_view s) {
    const auto from = s.find_first_not_of(" \t");
    return from == s.npos ? std::string_view{} : s.substr(from, s.find_last_not_of(" \t\r") + 1 - from);
  };
  text = cut(text.substr(0, text.find(';')));
  const auto end = std::min(text.find_first_of(" \t"), text.size());
  return {std::string(text.substr(0, end)), std::string(cut(text.substr(end))), place, false, k_nowhere};
}

// Text that a compiler printed has each block's beginning, a disassembler's the addresses alone.
class reader {
 public:
  explicit reader(std::istream& from) {
    for (std::string line; std::getline(from, line);) take(line, ++number_);
    for (function& f : functions_) {
      resolve(f);
      if (by_address_) {
        find_blocks(f);
      } else {
        leave_arms_out(f);
      }
    }
  }
  const std::vector<function>& functions() const { return functions_; }
  bool by_address() const { return by_address_; }

 private:
  void take(const std::string& line, std::uint64_t number) {
    if (line.empty()) return;
    if (line.starts_with(".LBB") || line.starts_with("; %bb.")) {
      begins_ = true;
      if (line[0] == '.' && !functions_.empty())
        functions_.back().labels[line.substr(0, line.find(':'))] = functions_.back().body.size();
    } else if (const auto open = line.find(" <");
               std::isxdigit(static_cast<unsigned char>(line[0])) != 0 && open != line.npos && line.ends_with(">:")) {
      by_address_ = true;
      functions_.push_back({line.substr(open + 2, line.size() - open - 4), hex(line), {}, {}});
    } else if (is_word(line[0]) && line[0] != '.' && line.find(':') != line.npos) {
      functions_.push_back({line.substr(0, line.find(':')), 0, {}, {}});
      begins_ = false;
    } else if ((line[0] == '\t' || line[0] == ' ') && !functions_.empty()) {
      add(line, number);
    }
  }

  void add(const std::string& line, std::uint64_t number) {
    const auto comment = line.find("// ");
    if (by_address_ && comment == line.npos) return;
    instruction i = instruction_of(line.substr(0, comment), by_address_ ? hex(line.substr(comment + 3)) : number);
    if (i.name.find('_') == i.name.npos || std::islower(static_cast<unsigned char>(i.name[0])) == 0) return;
    i.begins = begins_;
    begins_ = false;
    functions_.back().body.push_back(std::move(i));
  }

  static std::uint64_t hex(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 16); }

  void resolve(function& f) const {
    std::map<std::uint64_t, std::size_t> at;
    for (std::size_t k = 0; by_address_ && k < f.body.size(); ++k) at[f.body[k].place] = k;
    for (instruction& i : f.body) {
      if (!is_branch(i)) continue;
      if (by_address_) {
        const auto words = static_cast<std::int16_t>(std::strtol(i.operands.c_str(), nullptr, 10));
        const auto found = at.find(i.place + 4 + static_cast<std::uint64_t>(std::int64_t{words} * 4));
        if (found != at.end()) i.leads = found->second;
      } else if (const auto found = f.labels.find(i.operands); found != f.labels.end()) {
        if (found->second < f.body.size()) i.leads = found->second;
      }
    }
  }

  // Blocks that are entered with no lane at all: where a branch leads that is taken for want of lanes, and behind one
  // that is taken as long as there are some. An arm of a branch is never among them.
  static void find_blocks(function& f) {
    for (std::size_t k = 1; k < f.body.size(); ++k) f.body[k].begins = f.body[k - 1].name == "s_cbranch_execnz";
    for (const instruction& i : f.body)
      if (i.name == "s_cbranch_execz" && i.leads != k_nowhere) f.body[i.leads].begins = true;
  }

  // A block that is entered by branches of the whole wave alone has the lanes of one arm. It may go on with what
  // follows the arm, where that was copied. Far branches go by an address, and count as any.
  static void leave_arms_out(function& f) {
    std::set<std::size_t> joins;
    for (const instruction& i : f.body) {
      const auto label = i.operands.find(".LBB");
      if (label == std::string::npos || (is_branch(i) && i.name != "s_cbranch_execz")) continue;
      const auto at = f.labels.find(i.operands.substr(label, i.operands.find_first_of("-+@, ", label) - label));
      if (at != f.labels.end()) joins.insert(at->second);
    }
    for (const auto& [name, at] : f.labels)
      if (joins.count(at) == 0 && at > 0 && at < f.body.size() && never_goes_on(f.body[at - 1]))
        f.body[at].begins = false;
  }

  std::vector<function> functions_;
  std::uint64_t number_ = 0;
  bool begins_ = false, by_address_ = false;
};

// --- What an instruction reads and writes ------------------------------------------------------------

// v5, a[2:3], s[4:5]
registers registers_in(std::string_view text) {
  registers all;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const char kind = text[i];
    if ((kind != 'v' && kind != 'a' && kind != 's') || (i > 0 && is_word(text[i - 1]))) continue;
    const bool several = text[i + 1] == '[';
    std::size_t at = i + (several ? 2 : 1);
    const auto number = [&] {
      unsigned n = 0;
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0)
        n = n * 10 + static_cast<unsigned>(text[at++] - '0');
      return n;
    };
    if (at >= text.size() || std::isdigit(static_cast<unsigned char>(text[at])) == 0) continue;
    const unsigned first = number();
    unsigned last = first;
    if (several && at < text.size() && text[at] == ':') {
      ++at;
      last = number();
    }
    for (unsigned n = first; n <= last && n < 1024; ++n) all.insert(kind + std::to_string(n));
  }
  return all;
}

registers vector_registers_in(std::string_view text) {
  registers all = registers_in(text);
  std::erase_if(all, [](const std::string& r) { return r[0] == 's'; });
  return all;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool writes_lanes(const instruction& i) {
  if (i.name.starts_with("v_"))
    return !i.name.starts_with("v_cmp") && !i.name.starts_with("v_readlane") &&
           !i.name.starts_with("v_readfirstlane") && !i.name.starts_with("v_writelane");
  return has(i.name, "_load_") || i.name.starts_with("ds_read") ? !i.name.starts_with("s_") && !has(i.operands, " lds")
                                                                : false;
}

// A register that did not fit is stored in the lane's own memory.
bool is_spill(const instruction& i) {
  return i.name.starts_with("scratch_store") ||
         (i.name.starts_with("buffer_store") && has(i.operands, "off, s[") && !has(i.operands, " offen"));
}

struct effect {
  registers read, written;
};

// Of several instructions in one (v_dual_..) each. A register that is written in part counts as read too.
effect effect_of(const instruction& i) {
  effect e;
  if (!writes_lanes(i)) return {vector_registers_in(i.operands), {}};
  std::string_view rest = i.operands;
  while (!rest.empty()) {
    const auto other = rest.find("::");
    std::string_view one = rest.substr(0, other);
    if (other == rest.npos) {
      rest = {};
    } else {
      rest = rest.substr(other + 2);
      rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
      rest = rest.substr(std::min(rest.find(' '), rest.size()));
    }
    const auto comma = std::min(one.find(','), one.size());
    e.written.merge(vector_registers_in(one.substr(0, comma)));
    e.read.merge(vector_registers_in(one.substr(comma)));
  }
  for (const char* part : {"mac", "_d16", "_sdwa", "_dpp", "dot2c", "swap"})
    if (has(i.name, part)) e.read.insert(e.written.begin(), e.written.end());
  return e;
}

// --- Joins -------------------------------------------------------------------------------------------

bool changes_exec(const instruction& i) {
  return i.name.find("saveexec") != std::string::npos || i.operands.starts_with("exec");
}

// Lets lanes in: those of both arms, or those of the other arm in the place of the first's (`turn`).
bool is_turn(const instruction& i) {
  return (i.name.starts_with("s_or_saveexec") || i.name.starts_with("s_andn2_saveexec") ||
          i.name.starts_with("s_and_not1_saveexec")) &&
         !i.operands.ends_with(", -1");
}
bool is_join(const instruction& i) {
  return (i.name == "s_or_b64" && i.operands.starts_with("exec, exec, ")) ||
         (i.name == "s_or_b32" && i.operands.starts_with("exec_lo, exec_lo, ")) || is_turn(i);
}

bool leaves_block(const instruction& i) { return is_branch(i) || never_goes_on(i) || i.name.starts_with("s_swappc"); }

// Where the block begins of which body[join] lets lanes in; join itself if that is not seen. In a code object the
// scalar instructions that fetch the mask are in that block too, for it is the one that uses them.
std::size_t begin_of(const std::vector<instruction>& body, std::size_t join, bool by_address) {
  const auto comma = body[join].operands.rfind(',');
  registers mask = registers_in(std::string_view(body[join].operands).substr(comma));
  std::size_t begin = join, fetched = join;
  while (begin > 0 && !body[begin].begins && !changes_exec(body[begin - 1]) && !leaves_block(body[begin - 1])) {
    --begin;
    const std::string_view operands = body[begin].operands;
    const registers written = registers_in(operands.substr(0, std::min(operands.find(','), operands.size())));
    if (!body[begin].name.starts_with("v_readlane")) continue;
    for (const std::string& one : written)
      if (mask.erase(one) != 0) fetched = begin;
  }
  if (body[begin].begins) return begin;
  return by_address ? fetched : join;
}

// Whether a lane that was let in by body[join] may find the register as it was: not if all lanes write it first. Of
// the other arm's lanes only what they read in that arm counts, for what it leaves behind is each arm's own.
bool may_be_read(const std::vector<instruction>& body, std::size_t join, const std::string& what) {
  const bool turn = is_turn(body[join]);
  int depth = 0;
  bool narrowed = false;
  std::size_t steps = 0;
  for (std::size_t k = join + 1; k < body.size() && ++steps <= body.size(); ++k) {
    const instruction& i = body[k];
    // The other arm may stand apart, too.
    const bool away = i.name == "s_branch" || (i.name == "s_cbranch_execnz" && k == join + 1);
    if (turn && away && i.leads != k_nowhere) {
      k = i.leads - 1;
      continue;
    }
    const effect e = effect_of(i);
    if (e.read.count(what) != 0) return true;
    if (!turn && (i.begins || leaves_block(i))) return true;
    if (e.written.count(what) != 0 && (!narrowed || turn)) return false;
    if (changes_exec(i) && !turn) narrowed = true;
    if (i.name.starts_with("s_and_saveexec")) ++depth;
    if (is_join(i) && !is_turn(i) && --depth < 0) return false;
  }
  return false;
}

void search(const function& f, bool by_address, machine_code& found) {
  for (std::size_t join = 0; join < f.body.size(); ++join) {
    if (!is_join(f.body[join])) continue;
    ++found.joins;
    for (std::size_t k = begin_of(f.body, join, by_address); k < join; ++k) {
      const instruction& i = f.body[k];
      const registers written = effect_of(i).written;
      const bool lost = is_spill(i) || std::ranges::any_of(
                                           written, [&](const std::string& r) { return may_be_read(f.body, join, r); });
      if (!lost) continue;
      const auto text = [](const instruction& one) { return one.name + " " + one.operands; };
      const std::string place =
          by_address ? fmt::format("+{:#x}", i.place - f.address) : fmt::format("line {}", i.place);
      found.lost.push_back({f.name, place, text(i), text(f.body[join])});
    }
  }
}

// Reads what a compiler printed (-S), or llvm-objdump -d.
machine_code look_for_lost_lanes(std::istream& text) {
  machine_code found;
  const reader all(text);
  for (const function& f : all.functions()) {
    found.instructions += f.body.size();
    search(f, all.by_address(), found);
  }
  return found;
}

// --- The file ---

constexpr std::string_view k_elf("\177ELF");
constexpr unsigned k_machine_amdgpu = 224;  // EM_AMDGPU, which old elf.h lack

std::string content_of(const std::string& file) {
  // A FIFO would be waited for, a device read without end.
  const unique_fd fd(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat is {};
  if (!fd || fstat(fd.get(), &is) != 0) fail(XIO_ERR_ARG, "{} cannot be read: {}", file, std::strerror(errno));
  if (!S_ISREG(is.st_mode)) fail(XIO_ERR_ARG, "{} is no file", file);
  std::string all(static_cast<std::size_t>(is.st_size), '\0');
  std::size_t had = 0;
  while (had < all.size()) {
    const ssize_t n = read(fd.get(), all.data() + had, all.size() - had);
    if (n <= 0) fail(XIO_ERR_ARG, "{} cannot be read: {}", file, n == 0 ? "it became shorter" : std::strerror(errno));
    had += static_cast<std::size_t>(n);
  }
  return all;
}

// Code objects are ELF files for AMD GPUs. They lie in programs and in bundles as they are, section headers last.
std::vector<std::string_view> code_objects_in(std::string_view all) {
  std::vector<std::string_view> found;
  for (auto at = all.find(k_elf); at != all.npos; at = all.find(k_elf, at + 1)) {
    Elf64_Ehdr head;
    const std::string_view rest = all.substr(at);
    if (rest.size() < sizeof head) break;
    std::memcpy(&head, rest.data(), sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != k_machine_amdgpu || head.e_shoff > rest.size())
      continue;
    const std::size_t size = head.e_shoff + std::size_t{head.e_shnum} * head.e_shentsize;
    if (size <= rest.size()) found.push_back(rest.substr(0, size));
  }
  return found;
}

std::string output_of(const std::string& command) {
  std::string all;
  FILE* const from = popen(command.c_str(), "re");
  if (from == nullptr) return all;
  char buffer[65536];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, from)) > 0;) all.append(buffer, n);
  return pclose(from) == 0 ? all : "";
}

// By the first llvm-objdump that knows its instructions: ROCm's, or a distribution's, newest first.
machine_code look_at(std::string_view object) {
  const unique_fd copy(memfd_create("code-object", 0));  // the child gets it
  if (!copy || write(copy.get(), object.data(), object.size()) != static_cast<ssize_t>(object.size()))
    fail(XIO_ERR_IO, "no memory for a code object: {}", std::strerror(errno));
  for (const char* name : {"/opt/rocm/llvm/bin/llvm-objdump", "llvm-objdump-23", "llvm-objdump-22", "llvm-objdump-21",
                           "llvm-objdump-20", "llvm-objdump-19", "llvm-objdump-18", "llvm-objdump-17",
                           "llvm-objdump-16", "llvm-objdump-15", "llvm-objdump"}) {
    std::istringstream text(output_of(fmt::format("{} -d /proc/self/fd/{} 2>/dev/null", name, copy.get())));
    machine_code code = look_for_lost_lanes(text);
    if (code.instructions != 0) return code;
  }
  fail(XIO_ERR_ARG,
       "no llvm-objdump was found that reads this code object, neither in PATH nor in /opt/rocm/llvm/bin: install "
       "ROCm's or a newer one");
}

[[noreturn]] void refuse(const std::string& file, std::string_view all) {
  if (all.find("CCOB") != all.npos)
    fail(XIO_ERR_ARG, "the code objects in {} are compressed: link it with --no-offload-compress", file);
  fail(XIO_ERR_ARG,
       "{} has no machine code for AMD GPUs: give a code object, a program or a library with such, or what the "
       "compiler prints with -S",
       file);
}

}  // namespace

int say_which_lanes_are_lost(const std::string& file) {
  const std::string all = content_of(file);
  std::vector<machine_code> parts;
  for (const std::string_view object : code_objects_in(all)) parts.push_back(look_at(object));
  if (parts.empty()) {
    // Not a program that has the word among its own.
    if (all.starts_with(k_elf) || all.find(".amdgcn_target") == all.npos) refuse(file, all);
    std::istringstream text(all);
    parts.push_back(look_for_lost_lanes(text));
    if (parts.back().instructions == 0) refuse(file, all);
  }
  std::size_t instructions = 0, joins = 0, lost = 0;
  for (const machine_code& part : parts) {
    instructions += part.instructions;
    joins += part.joins;
    lost += part.lost.size();
    for (const lost_lane& one : part.lost)
      std::printf("%s: %s, %s: '%s' stands before '%s', so the lanes that this lets in do not have it\n", file.c_str(),
                  one.function.c_str(), one.place.c_str(), one.written.c_str(), one.join.c_str());
  }
  std::printf("%s: %zu instructions; lanes come together in %zu places, and lose values in %zu\n", file.c_str(),
              instructions, joins, lost);
  return lost == 0 ? 0 : 1;
}

}  // namespace xio::verify
