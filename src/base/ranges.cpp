// SPDX-License-Identifier: MIT
// Ranges of the host's calls for profilers: by roctx, whose library AMD's profilers listen at, and by NVTX. NVTX 3 has
// no library: a program gives the profiler, which NVTX_INJECTION64_PATH names, a table of pointers to functions, and
// calls what the profiler has put there (nvtx3/nvtxDetail/nvtxTypes.h of CUDA 12).
#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

#include "base/log.hpp"
#include "base/trace.hpp"

namespace xio::trace {

namespace {

using push_function = int(const char*);
using pop_function = int();
struct receiver {
  push_function* push = nullptr;
  pop_function* pop = nullptr;
  explicit operator bool() const { return push != nullptr && pop != nullptr; }
};
receiver g_receivers[2];

receiver found_in(const char* library, const char* push, const char* pop) {
  void* const at = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (at == nullptr) return {};
  return {reinterpret_cast<push_function*>(dlsym(at, push)), reinterpret_cast<pop_function*>(dlsym(at, pop))};
}

// The table of a module, of which one is of use here: number 1, in which 9 is RangePushA and 11 RangePop.
constexpr unsigned k_table = 16, k_push = 9, k_pop = 11;
using any_function = void (*)();
any_function g_functions[k_table], g_unused[k_table];
any_function *g_core[k_table], *g_others[k_table];
int table_of(std::uint32_t module, any_function*** table, unsigned* size) {
  any_function** const places = module == 1 ? g_core : g_others;
  for (unsigned i = 1; i < k_table; ++i) places[i] = module == 1 ? &g_functions[i] : &g_unused[i];
  *table = places;
  *size = k_table;
  return 1;
}
struct callbacks {
  std::size_t bytes = sizeof(callbacks);
  int (*table)(std::uint32_t, any_function***, unsigned*) = table_of;
};
struct version_info {
  std::size_t bytes = sizeof(version_info);
  std::uint32_t version = 3, reserved = 0;
  void (*set)(std::uint32_t) = [](std::uint32_t) {};
};
const void* export_table(std::uint32_t number) {
  static const callbacks c;
  static const version_info v;
  return number == 1 ? static_cast<const void*>(&c) : number == 3 ? &v : nullptr;
}

receiver by_injection() {
  const char* const profiler = std::getenv("NVTX_INJECTION64_PATH");
  void* const at = profiler == nullptr ? nullptr : dlopen(profiler, RTLD_NOW | RTLD_LOCAL);
  using initialize = int(const void* (*)(std::uint32_t));
  auto* const begin = at == nullptr ? nullptr : reinterpret_cast<initialize*>(dlsym(at, "InitializeInjectionNvtx2"));
  if (begin == nullptr || begin(export_table) == 0) return {};
  return {reinterpret_cast<push_function*>(g_functions[k_push]), reinterpret_cast<pop_function*>(g_functions[k_pop])};
}

void push(const char* name) {
  for (const receiver& t : g_receivers)
    if (t) t.push(name);
}
void pop() {
  for (const receiver& t : g_receivers)
    if (t) t.pop();
}

void find_receivers() {
  static const range_receivers all{push, pop};
  for (const char* const library : {"librocprofiler-sdk-roctx.so.1", "libroctx64.so.4", "libroctx64.so"})
    if (!g_receivers[0]) g_receivers[0] = found_in(library, "roctxRangePushA", "roctxRangePop");
  g_receivers[1] = by_injection();
  if (!g_receivers[1]) g_receivers[1] = found_in("libnvToolsExt.so.1", "nvtxRangePushA", "nvtxRangePop");
  if (g_receivers[0] || g_receivers[1]) return g_ranges.store(&all, std::memory_order_release);
  log::warn(
      "XIO_TRACE=ranges: nothing here takes ranges: no roctx (libroctx64.so), no profiler that NVTX_INJECTION64_PATH "
      "names, no libnvToolsExt.so.1; start the program by a profiler");
}

}  // namespace

void open_ranges() {
  static std::once_flag once;
  std::call_once(once, find_receivers);
}

}  // namespace xio::trace
