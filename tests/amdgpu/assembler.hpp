// SPDX-License-Identifier: MIT
// Assembles a few lines for a GPU at test time, by the assembler of the LLVM library that also disassembles: a module
// that holds nothing but inline assembly is emitted as an object file, whose .text is the program.
#pragma once
#include <dlfcn.h>
#include <elf.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace amdgpu::test {

class assembler {
 public:
  // FEATURES as LLVM has them, "+wavefrontsize64".
  static std::vector<std::uint32_t> words(const std::string& text, const char* cpu = "gfx90a",
                                          const char* features = "") {
    static assembler only;
    return only.assemble(text + "\n", cpu, features);
  }

 private:
  assembler() {
    self = this;
    if (const char* named = std::getenv("XIO_AMDGPU_LLVM")) library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
    for (const char* name :
         {"libLLVM.so.22.1", "libLLVM-22.so", "libLLVM.so.19.1", "libLLVM-19.so", "libLLVM-15.so.1", "libLLVM-15.so"})
      if (library || (library = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
    if (!library) throw std::runtime_error("no LLVM library (22, 19 or 15): these tests need libllvm15 at least");
    for (const char* part : {"TargetInfo", "Target", "TargetMC", "AsmParser", "AsmPrinter"})
      call<void>((std::string("LLVMInitializeAMDGPU") + part).c_str());
    char* error = nullptr;
    if (call<int>("LLVMGetTargetFromTriple", triple, &target, &error)) throw std::runtime_error("no AMDGPU target");
  }

  template <class R, class... A>
  R call(const char* name, A... a) {
    auto* const f = reinterpret_cast<R (*)(A...)>(dlsym(library, name));
    if (!f) throw std::runtime_error(std::string("the LLVM library has no ") + name);
    return f(a...);
  }

  std::vector<std::uint32_t> assemble(const std::string& text, const char* cpu, const char* features) {
    auto* const context = call<void*>("LLVMContextCreate");
    auto* const module = call<void*>("LLVMModuleCreateWithNameInContext", "test", context);
    call<void>("LLVMSetTarget", module, triple);
    call<void>("LLVMSetModuleInlineAsm2", module, text.c_str(), text.size());
    auto* const machine = call<void*>("LLVMCreateTargetMachine", target, triple, cpu, features, 2, 0, 0);
    // Without a handler LLVM ends the process where it finds an error.
    bool wrong = false;
    call<void>("LLVMContextSetDiagnosticHandler", context, &note_error, &wrong);
    char* error = nullptr;
    void* buffer = nullptr;
    if (call<int>("LLVMTargetMachineEmitToMemoryBuffer", machine, module, 1, &error, &buffer))
      throw std::runtime_error(error ? error : "assembling failed");
    const auto* const start = call<const char*>("LLVMGetBufferStart", buffer);
    const std::vector<std::uint32_t> found = text_of(start);
    call<void>("LLVMDisposeMemoryBuffer", buffer);
    call<void>("LLVMDisposeTargetMachine", machine);
    call<void>("LLVMDisposeModule", module);
    call<void>("LLVMContextDispose", context);
    if (wrong || found.empty()) throw std::runtime_error(std::string("no instructions of ") + cpu + ": " + text);
    return found;
  }

  // LLVMDiagnosticHandler: 0 is an error's severity.
  void note_error_of(void* diagnostic, bool* wrong) {
    if (call<int>("LLVMGetDiagInfoSeverity", diagnostic) == 0) *wrong = true;
  }
  static void note_error(void* diagnostic, void* wrong) { self->note_error_of(diagnostic, static_cast<bool*>(wrong)); }

  static std::vector<std::uint32_t> text_of(const char* file) {
    const auto* const head = reinterpret_cast<const Elf64_Ehdr*>(file);
    const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(file + head->e_shoff);
    const char* const names = file + sections[head->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < head->e_shnum; ++i)
      if (std::strcmp(names + sections[i].sh_name, ".text") == 0) {
        std::vector<std::uint32_t> words(sections[i].sh_size / 4);
        std::memcpy(words.data(), file + sections[i].sh_offset, words.size() * 4);
        return words;
      }
    return {};
  }

  static inline assembler* self = nullptr;
  const char* const triple = "amdgcn-amd-amdhsa";
  void* library = nullptr;
  void* target = nullptr;
};

}  // namespace amdgpu::test
