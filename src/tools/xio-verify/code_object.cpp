// SPDX-License-Identifier: MIT
#include "tools/xio-verify/code_object.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "tools/xio-verify/lost_lanes.hpp"

namespace xio::verify {
namespace {

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
