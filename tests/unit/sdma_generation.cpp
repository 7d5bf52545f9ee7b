// SPDX-License-Identifier: MIT
// Which generation of copy engine a GPU has: IP versions as linux amdgpu_discovery.c lists them, limits as sdma_v*.c.
#include "../gtest.hpp"
#include "base/error.hpp"
#include "transport/sdma/generation.hpp"

namespace xio::sdma {
namespace {

namespace w = wire::sdma;

TEST(sdma_generation, is_known_by_the_processors_name) {
  const struct {
    const char* name;
    w::generation is;
    std::uint64_t most;  // bytes that one copy can say
  } rows[] = {
      {"gfx900", w::gen_9_0, 1u << 22},        {"gfx906:sramecc+:xnack-", w::gen_9_0, 1u << 22},
      {"gfx908", w::gen_9_0, 1u << 22},        {"gfx90a:sramecc+:xnack-", w::gen_9_0a, 1u << 30},
      {"gfx90c", w::gen_9_0, 1u << 22},        {"gfx942:sramecc+", w::gen_9_4, 1u << 30},
      {"gfx950", w::gen_9_4, 1u << 30},        {"gfx1010", w::gen_10_1, 1u << 22},
      {"gfx1030", w::gen_10_3, 1u << 30},      {"gfx1036", w::gen_10_3, 1u << 30},
      {"gfx1100", w::gen_11, 1u << 30},        {"gfx1151", w::gen_11, 1u << 30},
      {"gfx1201:xnack-", w::gen_12, 1u << 30},
  };
  for (const auto& r : rows) {
    EXPECT_EQ(generation_of(r.name), r.is) << r.name;
    EXPECT_EQ(w::copy_bytes_max(r.is), r.most) << r.name;
    EXPECT_LE(chunk_of(r.is), r.most) << r.name;
    EXPECT_EQ(chunk_of(r.is) % 32, 0u) << r.name;
    EXPECT_GT(chunk_of(r.is), (1u << 22) - 64) << r.name;
  }
}

TEST(sdma_generation, an_unknown_gpu_is_named_with_those_that_are_known) {
  for (const char* name : {"", "gfx", "gfx90", "gfx9000", "gfx1250", "sm_90", "host", "gfx803", "GFX90A", "gfx90a "}) {
    try {
      generation_of(name);
      ADD_FAILURE() << name;
    } catch (const error& e) {
      EXPECT_EQ(e.status(), XIO_ERR_UNSUPPORTED);
      EXPECT_NE(std::string(e.what()).find('"' + std::string(name) + '"'), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("gfx942"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace xio::sdma
