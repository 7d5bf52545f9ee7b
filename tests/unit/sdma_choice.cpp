// SPDX-License-Identifier: MIT
// Which copy engines a GPU has, and which of them are taken.
#include "refusal.hpp"
#include "says.hpp"
#include "transport/sdma/engine_choice.hpp"
#include "transport/sdma/generation.hpp"

namespace xio::sdma {
namespace {

namespace w = wire::sdma;
using xio::test::refusal;
using xio::test::says;

// --- Engines ----------------------------------------------------------------------------------------
// Which copy engine a queue is for. Machines: MI300X (8 GPUs by xGMI; 2 engines for PCIe and 14 for xGMI, 8 queues
// each, masks per link), MI210 by PCIe (2 and 3 engines), a Radeon (2 engines), and nonsense.

using engines = std::vector<std::uint32_t>;

TEST(sdma_engines, the_users_list_is_numbers_or_a_mask) {
  EXPECT_PAIRS((parse_engines(""), engines{}), (parse_engines("3"), engines{3}),
               (parse_engines("2,0,2"), (engines{2, 0, 2})), (parse_engines("0xc"), (engines{2, 3})),
               (parse_engines("0x8000000000000001"), (engines{0, 63})));
  for (const char* text :
       {"x", "0,", ",0", "0 1", "-1", "0x", "0xg", "1,x", "4294967296", "0x1ffffffffffffffff", " 1", "1 "})
    EXPECT_TRUE(says(refusal(XIO_ERR_CONFIG, [&] { parse_engines(text); }), text)) << text;
  EXPECT_TRUE(says(refusal(XIO_ERR_CONFIG, [&] { parse_engines("0x0"); }), "no engine"));
  std::string many = "0";
  for (int i = 0; i < 64; ++i) many += ",0";
  refusal(XIO_ERR_CONFIG, [&] { parse_engines(many); });
}

TEST(sdma_engines, what_the_kernel_recommends_for_a_link_comes_first) {
  engine_chooser c("mi300x", {2, 14, 8, true}, {});
  const link_facts link{true, 0b1100};
  const auto first = c.take(link, 0), second = c.take(link, 1), third = c.take(link, 2);
  EXPECT_PAIRS((first.kind, queue_kind::by_engine), (first.engine, 2u), (second.engine, 3u), (third.engine, 2u));
  // Bits of engines that do not exist are nothing.
  EXPECT_EQ(c.take({true, std::uint64_t{1} << 40}, 0).kind, queue_kind::xgmi);
}

TEST(sdma_engines, those_that_were_tried_are_left_out_and_hold_nothing) {
  engine_chooser c("mi300x", {2, 14, 1, true}, {});
  const link_facts link{true, 0b1100};
  for (const std::uint32_t engine : {2u, 3u}) EXPECT_EQ(c.take(link, 0).engine, engine);
  c.give_back({queue_kind::by_engine, 2});
  EXPECT_PAIRS((c.take(link, 0, 0).engine, 2u), (c.take(link, 0, 0).kind, queue_kind::xgmi),
               (c.take(link, 0, 1).kind, queue_kind::pcie));
  refusal(XIO_ERR_NO_MEMORY, [&] { c.take(link, 0, 2); });
}

// By the words of linux amdkfd's allocate_doorbell: engine e's begin at 0x100 + 10 e, its odd queues' a page later, and
// blocks of four are what a shader's store finds.
TEST(sdma_engines, doorbells_in_a_block_of_the_engine_before_are_lost) {
  for (unsigned engine = 0; engine < 16; ++engine)
    for (unsigned queue = 0; queue < 8; ++queue)
      for (const unsigned moved : {0u, 2u}) {
        const unsigned first = 0x100 + 10 * engine + (engine % 2 == 1 ? moved : 0);
        const unsigned number = first + queue / 2 + 512 * (queue % 2);
        const unsigned block_begins = (0x100 + 10 * engine + queue / 2) / 4 * 4;
        const bool lost = moved == 0 && block_begins < 0x100 + 10 * engine;
        EXPECT_EQ(is_lost_doorbell(0x7f0000001000 + number * 8), lost) << engine << " " << queue << " " << moved;
      }
  for (const unsigned of_compute : {0u, 1u, 11u, 255u, 512u, 767u}) EXPECT_FALSE(is_lost_doorbell(of_compute * 8));
}

TEST(sdma_engines, without_a_recommendation_the_kernel_places_by_kind_of_link) {
  engine_chooser c("mi210", {2, 3, 8, true}, {});
  EXPECT_PAIRS((c.take({true, 0}, 0).kind, queue_kind::xgmi), (c.take({false, 0}, 0).kind, queue_kind::pcie));
  engine_chooser old("mi300x", {2, 14, 8, false}, {});
  EXPECT_EQ(old.take({true, 0b1100}, 0).kind, queue_kind::xgmi);
  engine_chooser radeon("gfx1030", {2, 0, 8, false}, {});
  EXPECT_EQ(radeon.take({true, 0}, 0).kind, queue_kind::pcie);
  engine_chooser strange("only xgmi", {0, 4, 2, false}, {});
  EXPECT_EQ(strange.take({false, 0}, 0).kind, queue_kind::xgmi);
}

TEST(sdma_engines, the_user_overrides_all_of_it) {
  engine_chooser c("mi300x", {2, 14, 8, true}, {5, 1});
  EXPECT_PAIRS((c.take({true, 0b1100}, 0).engine, 5u), (c.take({true, 0b1100}, 1).engine, 1u),
               (c.take({false, 0}, 2).engine, 5u));
  EXPECT_TRUE(says(refusal(XIO_ERR_CONFIG, [] { engine_chooser("mi210", {2, 3, 8, true}, {5}); }), "engines 0 to 4"));
  EXPECT_TRUE(says(refusal(XIO_ERR_UNSUPPORTED,
                           [] {
                             engine_chooser("mi210", {2, 3, 8, false}, {0});
                           }),
                   "libhsakmt 6.1"));
}

TEST(sdma_engines, full_engines_give_way_to_others_and_then_say_so) {
  engine_chooser c("mi210", {1, 1, 2, true}, {});
  std::vector<engine_choice> taken;
  // Recommended engine 1: two queues; then both kinds that the kernel places itself, two each.
  for (int i = 0; i < 6; ++i) taken.push_back(c.take({true, 0b10}, 0));
  EXPECT_PAIRS((taken[1].kind, queue_kind::by_engine), (taken[2].kind, queue_kind::xgmi),
               (taken[4].kind, queue_kind::pcie));
  test::expect_words(refusal(XIO_ERR_NO_MEMORY, [&] { c.take({true, 0b10}, 0); }), {"no free queue", "mi210"});
  c.give_back(taken[1]);
  EXPECT_EQ(c.take({true, 0b10}, 0).kind, queue_kind::by_engine);
  refusal(XIO_ERR_NO_MEMORY, [&] { c.take({true, 0b10}, 0); });
}

TEST(sdma_engines, gpus_without_any_or_with_too_many_are_refused) {
  EXPECT_TRUE(says(refusal(XIO_ERR_UNSUPPORTED, [] { engine_chooser("apu", {0, 0, 8, true}, {}); }), "apu"));
  EXPECT_TRUE(says(refusal(XIO_ERR_UNSUPPORTED, [] { engine_chooser("broken", {60, 60, 8, true}, {}); }), "120"));
}

// --- Generations ------------------------------------------------------------------------------------
// Which generation of copy engine a GPU has: IP versions as linux amdgpu_discovery.c lists them, limits as sdma_v*.c.

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
    SCOPED_TRACE(name);
    test::expect_words(refusal(XIO_ERR_UNSUPPORTED, [&] { generation_of(name); }),
                       {'"' + std::string(name) + '"', "gfx942"});
  }
}

}  // namespace
}  // namespace xio::sdma
