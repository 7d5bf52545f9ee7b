// SPDX-License-Identifier: MIT
// Runs kernels of a code object without driver and runtime: for tests of the interpreter. A code object is loaded into
// plain memory (LLVM AMDGPUUsage, "Code Object"); what a kernel may touch is listed buffer by buffer.
#pragma once
#include <elf.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "amdgpu/isa/workgroup.hpp"

namespace amdgpu::test {

// Memory that is mapped to the GPU: what was listed.
class buffers final : public address_space {
 public:
  void list(const void* at, std::uint64_t bytes, bool writable = true, mapping::place where = mapping::place::local,
            mapping::caching how = mapping::caching::coarse) {
    mapping m;
    m.where = where;
    m.how = how;
    m.base = reinterpret_cast<std::uint64_t>(at);
    m.host = m.base;
    m.bytes = bytes;
    m.writable = writable;
    known[m.base] = m;
    ++changes;
  }
  // Registers of a device, to which each store that arrives there is reported.
  void list_registers(const void* at, std::uint64_t bytes, register_file& device) {
    list(at, bytes, true, mapping::place::registers, mapping::caching::uncached);
    known[reinterpret_cast<std::uint64_t>(at)].device = &device;
  }
  // Lists memory that the GPU sees at an address of its own, as memory that a program registers.
  void list_at(std::uint64_t address, const void* host, std::uint64_t bytes) {
    mapping m;
    m.base = address;
    m.host = reinterpret_cast<std::uint64_t>(host);
    m.bytes = bytes;
    known[m.base] = m;
    ++changes;
  }
  void drop(const void* at) {
    known.erase(reinterpret_cast<std::uint64_t>(at));
    ++changes;
  }
  const mapping* find(std::uint64_t address) const override {
    auto after = known.upper_bound(address);
    if (after == known.begin()) return nullptr;
    const mapping& m = std::prev(after)->second;
    return address - m.base < m.bytes ? &m : nullptr;
  }
  std::uint64_t generation() const override { return changes; }

 private:
  std::map<std::uint64_t, mapping> known;
  std::uint64_t changes = 1;
};

// A device that keeps what is written to its registers.
struct rung_registers final : register_file {
  void written(std::uint64_t, std::uint64_t value) override { values.push_back(value); }
  std::vector<std::uint64_t> values;
};

struct freed_pages {
  void operator()(std::uint8_t* p) const { std::free(p); }
};
using pages = std::unique_ptr<std::uint8_t[], freed_pages>;

inline pages make_pages(std::size_t bytes) {
  const std::size_t size = (bytes + 4095) / 4096 * 4096;
  auto* const p = static_cast<std::uint8_t*>(std::aligned_alloc(4096, size));
  std::memset(p, 0, size);
  return pages(p);
}

class code_object {
 public:
  code_object(const std::vector<std::uint8_t>& file, buffers& visible) : bytes(unbundled(file)) {
    const auto& head = at<Elf64_Ehdr>(0);
    if (bytes.size() < sizeof(head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_machine != 224)
      throw std::runtime_error("not a code object of an AMD GPU");
    if (head.e_type != ET_DYN) return;  // not linked: its text can be read, not run
    std::uint64_t end = 0;
    for (unsigned i = 0; i < head.e_phnum; ++i)
      if (segment(i).p_type == PT_LOAD) end = std::max(end, segment(i).p_vaddr + segment(i).p_memsz);
    size = (end + 4095) / 4096 * 4096;
    image = make_pages(size);
    for (unsigned i = 0; i < head.e_phnum; ++i)
      if (segment(i).p_type == PT_LOAD)
        std::memcpy(image.get() + segment(i).p_vaddr, bytes.data() + segment(i).p_offset, segment(i).p_filesz);
    for (unsigned i = 0; i < head.e_shnum; ++i) read_section(section(i));
    visible.list(image.get(), size);
  }

  // The address of a kernel's descriptor or of any symbol.
  std::uint64_t symbol(const std::string& name) const {
    const auto found = symbols.find(name);
    if (found == symbols.end()) throw std::runtime_error("the code object has no symbol " + name);
    return found->second;
  }

  bool has(const std::string& name) const { return symbols.contains(name); }

  // f(start, bytes) for every section of instructions.
  template <class F>
  void each_text(F f) const {
    for (unsigned i = 0; i < at<Elf64_Ehdr>(0).e_shnum; ++i) {
      const Elf64_Shdr& s = section(i);
      if (s.sh_type != SHT_PROGBITS || !(s.sh_flags & SHF_EXECINSTR)) continue;
      if (s.sh_offset + s.sh_size > bytes.size()) throw std::runtime_error("the code object is cut off");
      f(bytes.data() + s.sh_offset, s.sh_size);
    }
  }

  static std::vector<std::uint8_t> read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }

 private:
  // Compilers may wrap code objects in a bundle: a magic, a count, and for each entry offset, size and a name (Clang's
  // documentation, "Clang Offload Bundler"). The one for XIO_AMDGPU_TARGET, or gfx90a, is taken.
  static std::vector<std::uint8_t> unbundled(const std::vector<std::uint8_t>& file) {
    static constexpr char magic[] = "__CLANG_OFFLOAD_BUNDLE__";
    constexpr std::size_t start = sizeof(magic) - 1;
    const auto word = [&](std::size_t at) {
      std::uint64_t x = 0;
      if (at + 8 > file.size()) throw std::runtime_error("the bundle is cut off");
      std::memcpy(&x, &file[at], 8);
      return x;
    };
    if (file.size() < start || std::memcmp(file.data(), magic, start) != 0) return file;
    const char* const named = std::getenv("XIO_AMDGPU_TARGET");
    const std::string wanted = name_of(target_of(named == nullptr ? "" : named));
    std::size_t at = start + 8;
    for (std::uint64_t left = word(start); left > 0; --left) {
      const std::uint64_t offset = word(at), bytes = word(at + 8), name = word(at + 16);
      if (at + 24 + name > file.size() || offset + bytes > file.size()) break;
      const std::string entry(reinterpret_cast<const char*>(&file[at + 24]), name);
      if (entry.find(wanted) != std::string::npos)
        return {file.begin() + static_cast<std::ptrdiff_t>(offset),
                file.begin() + static_cast<std::ptrdiff_t>(offset + bytes)};
      at += 24 + name;
    }
    throw std::runtime_error("the bundle holds no code for " + wanted);
  }

  template <class T>
  const T& at(std::uint64_t offset) const {
    if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("the code object is cut off");
    return *reinterpret_cast<const T*>(bytes.data() + offset);
  }
  const Elf64_Phdr& segment(unsigned i) const {
    return at<Elf64_Phdr>(at<Elf64_Ehdr>(0).e_phoff + i * sizeof(Elf64_Phdr));
  }
  const Elf64_Shdr& section(unsigned i) const {
    return at<Elf64_Shdr>(at<Elf64_Ehdr>(0).e_shoff + i * sizeof(Elf64_Shdr));
  }
  std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(image.get()); }

  void read_section(const Elf64_Shdr& s) {
    if (s.sh_type == SHT_DYNSYM)
      for (std::uint64_t i = 0; i < s.sh_size / sizeof(Elf64_Sym); ++i) {
        const auto& sym = at<Elf64_Sym>(s.sh_offset + i * sizeof(Elf64_Sym));
        symbols[&at<char>(section(s.sh_link).sh_offset + sym.st_name)] = base() + sym.st_value;
      }
    if (s.sh_type != SHT_RELA) return;
    for (std::uint64_t i = 0; i < s.sh_size / sizeof(Elf64_Rela); ++i) {
      const auto& r = at<Elf64_Rela>(s.sh_offset + i * sizeof(Elf64_Rela));
      std::uint64_t value = base() + static_cast<std::uint64_t>(r.r_addend);
      if (ELF64_R_TYPE(r.r_info) == 3)  // R_AMDGPU_ABS64; else R_AMDGPU_RELATIVE64
        value += at<Elf64_Sym>(section(s.sh_link).sh_offset + ELF64_R_SYM(r.r_info) * sizeof(Elf64_Sym)).st_value;
      std::memcpy(image.get() + r.r_offset, &value, 8);
    }
  }

  std::vector<std::uint8_t> bytes;
  pages image;
  std::uint64_t size = 0;
  std::map<std::string, std::uint64_t> symbols;
};

// Arguments of a kernel as they lie in its kernarg segment, and the implicit ones of code object version 5 behind them.
class arguments {
 public:
  template <class T>
  arguments& add(const T& value) {
    room.resize((room.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    const auto* const p = reinterpret_cast<const std::uint8_t*>(&value);
    room.insert(room.end(), p, p + sizeof(T));
    return *this;
  }
  std::vector<std::uint8_t> laid_out(const launch& how) const {
    std::vector<std::uint8_t> all(room);
    all.resize((all.size() + 7) / 8 * 8);
    const std::size_t implicit = all.size();
    all.resize(implicit + 256);
    const auto groups = workgroups_of(how);
    for (unsigned i = 0; i < 3; ++i) {
      const auto items = static_cast<std::uint16_t>(how.workgroup_size[i]);
      const auto rest = static_cast<std::uint16_t>(how.grid[i] % how.workgroup_size[i]);
      const std::uint32_t whole = how.grid[i] / how.workgroup_size[i];
      std::memcpy(&all[implicit + 4 * i], &whole, 4);
      std::memcpy(&all[implicit + 12 + 2 * i], &items, 2);
      std::memcpy(&all[implicit + 18 + 2 * i], &rest, 2);
    }
    (void)groups;
    return all;
  }

 private:
  std::vector<std::uint8_t> room;
};

struct outcome {
  workgroup::state state = workgroup::state::finished;
  fault what;
  counters counted;
};

// Runs all workgroups of a kernel, several at a time and in turns.
inline outcome run_kernel(buffers& visible, launch how, const arguments& with, unsigned slice = 1000) {
  const std::vector<std::uint8_t> kernarg = with.laid_out(how);
  std::vector<std::uint8_t> packet(64), queue(256);
  for (unsigned i = 0; i < 3; ++i) {
    const auto items = static_cast<std::uint16_t>(how.workgroup_size[i]);
    std::memcpy(&packet[4 + 2 * i], &items, 2);
    std::memcpy(&packet[12 + 4 * i], &how.grid[i], 4);
  }
  const auto page = make_pages(8192);
  std::memcpy(page.get(), kernarg.data(), std::min<std::size_t>(kernarg.size(), 4096));
  std::memcpy(page.get() + 4096, packet.data(), 64);
  visible.list(page.get(), 8192);
  how.kernarg = reinterpret_cast<std::uint64_t>(page.get());
  how.dispatch_packet = how.kernarg + 4096;
  how.queue = how.kernarg + 4096 + 64;
  if (!how.lds_aperture) how.lds_aperture = std::uint64_t{1} << 48;
  if (!how.private_aperture) how.private_aperture = std::uint64_t{2} << 48;
  outcome all;
  std::vector<workgroup> running;
  const auto groups = workgroups_of(how);
  const std::uint64_t count = std::uint64_t{groups[0]} * groups[1] * groups[2];
  std::uint64_t next = 0;
  while (next < count || !running.empty()) {
    while (next < count && running.size() < 8) {
      const std::array<std::uint32_t, 3> id{static_cast<std::uint32_t>(next % groups[0]),
                                            static_cast<std::uint32_t>(next / groups[0] % groups[1]),
                                            static_cast<std::uint32_t>(next / groups[0] / groups[1])};
      running.emplace_back(how, visible, id);
      ++next;
    }
    for (std::size_t i = 0; i < running.size();) {
      const auto now = running[i].run(slice);
      if (now == workgroup::state::running) {
        ++i;
        continue;
      }
      all.counted += running[i].executed();
      if (now == workgroup::state::faulted) {
        all.state = now;
        all.what = running[i].what();
        visible.drop(page.get());
        return all;
      }
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  visible.drop(page.get());
  return all;
}

}  // namespace amdgpu::test
