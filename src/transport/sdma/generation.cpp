// SPDX-License-Identifier: MIT
#include "transport/sdma/generation.hpp"
#include "base/error.hpp"

namespace xio::sdma {

namespace w = wire::sdma;

namespace {

struct row {
  const char* name;  // of a processor, or with a * of all that begin so
  w::generation is;
};

// IP versions by GPU: linux drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c and amdgpu_sdma.c; names: LLVM AMDGPUUsage.
constexpr row k_rows[] = {
    {"gfx900", w::gen_9_0},   {"gfx902", w::gen_9_0},   {"gfx904", w::gen_9_0},   {"gfx906", w::gen_9_0},
    {"gfx908", w::gen_9_0},   {"gfx909", w::gen_9_0},   {"gfx90c", w::gen_9_0},   {"gfx90a", w::gen_9_0a},
    {"gfx940", w::gen_9_4},   {"gfx941", w::gen_9_4},   {"gfx942", w::gen_9_4},   {"gfx950", w::gen_9_4},
    {"gfx1010", w::gen_10_1}, {"gfx1011", w::gen_10_1}, {"gfx1012", w::gen_10_1}, {"gfx1013", w::gen_10_1},
    {"gfx103*", w::gen_10_3}, {"gfx110*", w::gen_11},   {"gfx115*", w::gen_11},   {"gfx1200", w::gen_12},
    {"gfx1201", w::gen_12},
};

bool matches(const std::string& name, const std::string& pattern) {
  if (pattern.back() != '*') return name == pattern;
  return name.size() == pattern.size() && name.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
}

}  // namespace

w::generation generation_of(const std::string& full) {
  const std::string name = full.substr(0, full.find(':'));
  for (const row& r : k_rows)
    if (matches(name, r.name)) return r.is;
  std::string known;
  for (const row& r : k_rows) known += (known.empty() ? "" : ", ") + std::string(r.name);
  fail(XIO_ERR_UNSUPPORTED,
       "the packets of the copy engines of GPU \"{}\" are not known, only those of {}; set XIO_ROUTE=direct, or "
       "XIO_MODEL_GPU to one of these for the software engine",
       full, known);
}

// The field holds one less than the bytes. ROCR keeps below it by a cache line's share, so that the pieces of a long
// copy stay aligned, and does not use the wide field of gfx94x (core/runtime/amd_blit_sdma.cpp, kMaxSingleCopySize).
std::uint32_t chunk_of(w::generation g) {
  constexpr std::uint32_t spare = 32;
  if (g == w::gen_9_4) return static_cast<std::uint32_t>(w::k_copy_bytes_22) - spare;
  return static_cast<std::uint32_t>(w::copy_bytes_max(g)) - spare;
}

}  // namespace xio::sdma
