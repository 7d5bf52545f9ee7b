// SPDX-License-Identifier: MIT
#include "amdgpu/queues/kernel_name.hpp"

#include <elf.h>

#include <cstring>

namespace amdgpu {
namespace {

constexpr std::uint64_t k_page = 4096;

// The header of the code object before `address`, which is at the start of a page.
std::uint64_t find_header(const page_table& table, std::uint64_t address) {
  const mapping* m = table.find(address);
  if (m == nullptr) return 0;
  for (std::uint64_t at = address & ~(k_page - 1); at >= m->base; at -= k_page) {
    const auto* ident = static_cast<const unsigned char*>(table.host(at, sizeof(Elf64_Ehdr)));
    if (ident != nullptr && std::memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS64) return at;
  }
  return 0;
}

struct symbols {
  std::uint64_t table = 0, strings = 0, string_bytes = 0, hash = 0;
};

symbols find_symbols(const page_table& table, std::uint64_t base) {
  const auto* header = table.at<Elf64_Ehdr>(base);
  symbols out;
  if (header == nullptr || header->e_phentsize != sizeof(Elf64_Phdr)) return out;
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    const auto* part = table.at<Elf64_Phdr>(base + header->e_phoff + i * sizeof(Elf64_Phdr));
    if (part == nullptr || part->p_type != PT_DYNAMIC) continue;
    for (std::uint64_t at = base + part->p_vaddr;; at += sizeof(Elf64_Dyn)) {
      const auto* entry = table.at<Elf64_Dyn>(at);
      if (entry == nullptr || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_SYMTAB) out.table = base + entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRTAB) out.strings = base + entry->d_un.d_ptr;
      if (entry->d_tag == DT_STRSZ) out.string_bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_HASH) out.hash = base + entry->d_un.d_ptr;
    }
  }
  return out;
}

}  // namespace

std::uint64_t start_of_code(const page_table& table, std::uint64_t kernel_object) {
  return find_header(table, kernel_object);
}

std::string kernel_name(const page_table& table, std::uint64_t kernel_object) {
  const std::uint64_t base = find_header(table, kernel_object);
  if (base == 0) return {};
  const symbols s = find_symbols(table, base);
  const auto* strings = static_cast<const char*>(table.host(s.strings, s.string_bytes));
  const auto* hash = static_cast<const std::uint32_t*>(table.host(s.hash, 2 * sizeof(std::uint32_t)));
  if (s.table == 0 || strings == nullptr || hash == nullptr) return {};
  for (std::uint32_t i = 0; i < hash[1]; ++i) {
    const auto* symbol = table.at<Elf64_Sym>(s.table + i * sizeof(Elf64_Sym));
    if (symbol == nullptr) break;
    if (base + symbol->st_value != kernel_object || symbol->st_name >= s.string_bytes) continue;
    std::string name(strings + symbol->st_name, strnlen(strings + symbol->st_name, s.string_bytes - symbol->st_name));
    if (name.ends_with(".kd")) name.resize(name.size() - 3);
    return name;
  }
  return {};
}

}  // namespace amdgpu
