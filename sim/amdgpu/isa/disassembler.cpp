// SPDX-License-Identifier: MIT
#include "amdgpu/isa/disassembler.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace amdgpu {
namespace {

// Names under which distributions install the library, newest first. XIO_AMDGPU_LLVM names another.
void* open_library() {
  if (const char* named = std::getenv("XIO_AMDGPU_LLVM")) return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  for (const char* name :
       {"libLLVM.so.22.1", "libLLVM-22.so", "libLLVM.so.19.1", "libLLVM-19.so", "libLLVM-15.so.1", "libLLVM-15.so"})
    if (void* found = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return found;
  return nullptr;
}

template <class F>
F* symbol(void* library, const char* name) {
  return reinterpret_cast<F*>(dlsym(library, name));
}

}  // namespace

// Never freed: threads may outlive static objects.
disassembler& disassembler::of(target gpu, bool wave32) {
  static disassembler* const gfx90a = new disassembler(name_of(target::gfx90a));
  if (gpu == target::gfx90a) return *gfx90a;
  if (gpu == target::gfx942) {
    static disassembler* const gfx942 = new disassembler(name_of(target::gfx942));
    return *gfx942;
  }
  static disassembler* const narrow = new disassembler(name_of(target::gfx1100), "+wavefrontsize32,-wavefrontsize64");
  if (wave32) return *narrow;
  static disassembler* const wide = new disassembler(name_of(target::gfx1100), "-wavefrontsize32,+wavefrontsize64");
  return *wide;
}

disassembler::disassembler(const char* cpu, const char* features) {
  void* const library = open_library();
  if (!library) {
    problem =
        "no LLVM library (libLLVM 22, 19 or 15) could be loaded to decode instructions: install libllvm15, or "
        "name one in XIO_AMDGPU_LLVM";
    return;
  }
  // Declared as llvm-c/Disassembler.h and llvm-c/Target.h do.
  using create_call = void*(const char*, const char*, const char*, void*, int, void*, void*);
  auto* const create = symbol<create_call>(library, "LLVMCreateDisasmCPUFeatures");
  instruction = reinterpret_cast<instruction_call>(dlsym(library, "LLVMDisasmInstruction"));
  for (const char* part : {"TargetInfo", "TargetMC", "Disassembler"}) {
    auto* const start = symbol<void()>(library, (std::string("LLVMInitializeAMDGPU") + part).c_str());
    if (!start) {
      problem = "the LLVM library was built without its AMDGPU target: name another in XIO_AMDGPU_LLVM";
      return;
    }
    start();
  }
  if (create && instruction) context = create("amdgcn-amd-amdhsa", cpu, features, nullptr, 0, nullptr, nullptr);
  if (!context) problem = std::string("the LLVM library has no disassembler for ") + cpu;
}

std::size_t disassembler::read(const std::uint32_t* code, std::size_t bytes, std::uint64_t pc, std::string& text) {
  char out[256];
  std::uint8_t copy[16] = {};
  if (bytes > sizeof(copy)) bytes = sizeof(copy);
  __builtin_memcpy(copy, code, bytes);
  const std::size_t used = instruction(context, copy, bytes, pc, out, sizeof(out));
  text = used ? out : "";
  const std::size_t first = text.find_first_not_of(" \t");
  text = first == std::string::npos ? "" : text.substr(first);
  for (char& c : text)
    if (c == '\t') c = ' ';
  return used;
}

}  // namespace amdgpu
