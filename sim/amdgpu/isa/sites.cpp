// SPDX-License-Identifier: MIT
#include "amdgpu/isa/sites.hpp"

#include <cstdio>

#include "amdgpu/report/counts_file.hpp"

namespace amdgpu {
namespace {

constexpr std::uint64_t k_page = 4096;

struct {
  std::map<std::uint64_t, ignoring> ignored;
  std::string list;
} wanted;

// Where the code object that holds PC begins in memory; 0 if none does.
std::uint64_t start_of_object(port& memory, std::uint64_t pc) {
  std::uint64_t left = 0;
  for (std::uint64_t at = pc & ~(k_page - 1);; at -= k_page) {
    const std::uint32_t* const words = memory.code(at, left);
    if (!words) return 0;
    if (std::memcmp(words, "\177ELF", 4) == 0) return at;
  }
}

// ROCr's and HIP's own kernels are not the program's, nor are those of libxio's software devices: they lie in other
// code objects, and a site there has nothing to do with the program's at the same place.
bool of_program(const std::string& kernel) {
  return !kernel.empty() && kernel.rfind("__amd_rocclr", 0) != 0 && kernel.rfind("_ZN3xio3gpu", 0) != 0;
}

// An atomic's glc asks for the old value and orders nothing.
bool is_fresh_load(const operation& o) {
  return o.kind == count::flat && o.scope.glc && o.name.find("_load_") != std::string_view::npos;
}

bool orders(const operation& o) {
  return o.kind == count::wait || o.kind == count::writeback || o.kind == count::invalidate || is_fresh_load(o);
}

void do_nothing(wave&, const operation&) {}

}  // namespace

void watch_sites(const std::map<std::uint64_t, ignoring>& ignored, const std::string& list) {
  wanted.ignored = ignored;
  wanted.list = list;
}

void look_at_site(operation& made, const wave& w) {
  if ((wanted.ignored.empty() && wanted.list.empty()) || !orders(made) || !of_program(w.of->how.name)) return;
  const std::uint64_t start = start_of_object(*w.of->memory, w.pc);
  if (start == 0) return;
  char site[32];
  std::snprintf(site, sizeof(site), "0x%llx", static_cast<unsigned long long>(w.pc - start));
  if (!wanted.list.empty())
    append_counts(wanted.list, std::string(site) + '\t' + made.text + '\t' + w.of->how.name + '\n');
  const auto found = wanted.ignored.find(w.pc - start);
  if (found == wanted.ignored.end()) return;
  std::fprintf(stderr, "software AMD GPU: the site %s, %s, is ignored in %s\n", site, made.text.c_str(),
               w.of->how.name.c_str());
  if (found->second == ignoring::wait && made.kind == count::writeback)
    made.variant = k_unwaited;
  else if (is_fresh_load(made))
    made.scope.glc = made.scope.scc = false;
  else
    made.run = do_nothing;
}

}  // namespace amdgpu
