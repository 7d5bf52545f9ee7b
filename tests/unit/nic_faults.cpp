// SPDX-License-Identifier: MIT
// The grammar of XIO_MODEL_FAULTS and what comes of it.
#include "gpu/gpu.hpp"
#include "model/nic/faults.hpp"
#include "proxy/nic.hpp"
#include "proxy/shm_executor.hpp"
#include "refusal.hpp"

namespace {

namespace m = xio::model::rdma;
using namespace xio::test;
using kind = m::fault_rule::kind;
using injected = m::injected_fault::kind;

TEST(faults, every_item) {
  const m::fault_rules f = m::parse_faults(
      "drop=0.25,dup=1,reorder=.5/pe3,delay=0.01:2ms,error@1000=remote_access/queue2/pe1,down@5000,seed=7");
  EXPECT_EQ(f.seed, 7u);
  ASSERT_EQ(f.rules.size(), 6u);
  EXPECT_EQ(f.rules[0].what, kind::drop);
  EXPECT_DOUBLE_EQ(f.rules[0].chance, 0.25);
  EXPECT_PAIRS((f.rules[1].what, kind::twice), (f.rules[2].what, kind::swap), (f.rules[2].pe, 3),
               (f.rules[2].queue, -1), (f.rules[3].wait, std::chrono::milliseconds(2)), (f.rules[4].nth, 1000u),
               (f.rules[4].how, m::outcome::remote_access), (f.rules[4].pe, 1), (f.rules[4].queue, 2),
               (f.rules[5].what, kind::down), (f.rules[5].nth, 5000u));
}

TEST(faults, mistakes_are_named_with_their_place) {
  const std::map<int, std::vector<std::string>> at{
      {1, {"drop", " drop=1"}},
      {6, {"drop=", "drop=2", "drop=-0.1", "drop=nan", "down@x", "seed=99999999999999999999999", "skip@"}},
      {7, {"error@=remote_access", "seed=1/pe1", "fatal@", "moved@x"}},
      {8, {"drop=1/where"}},
      {9, {"drop=0.1;dup=1", "drop=0.1 ", "error@1=oops", "astray@1"}},
      {10, {"drop=0.1,", "delay=0.1", "drop=1/pe", "astray@1=x"}},
      {12, {"delay=0.1:2", "drop=1/pe1/pe2", "delay=1:61s"}},
      {13, {"moved/queue1"}},
      {14, {"delay=0.1:0ms"}},
      {16, {"drop=1/queue512"}},
      {22, {"error@1=remote_accessx"}}};
  for (const auto& [place, texts] : at)
    for (const auto& text : texts) {
      SCOPED_TRACE(text);
      expect_words(refusal(XIO_ERR_CONFIG, [&] { (void)m::parse_faults(text); }),
                   {"at character " + std::to_string(place) + ";"});
    }
}

TEST(faults, no_text_no_faults) { EXPECT_EQ(m::make_faults("", 0), nullptr); }

TEST(faults, error_and_down_count_ops) {
  const auto f = m::make_faults("error@3=remote_operation,down@5/queue1", 0);
  const m::op o{};
  EXPECT_EQ(f->next(64, 2, o).what, injected::none);
  const m::injected_fault hit = f->next(64, 3, o);
  EXPECT_PAIRS((hit.what, injected::fail), (hit.how.what, m::outcome::remote_operation),
               (hit.how.why, m::rule::injected), (f->next(64, 9, o).what, injected::none),
               (f->next(68, 9, o).how.what, m::outcome::retry_exceeded));
}

TEST(faults, memory_moves_from_a_registration_on) {
  unsigned char a = 0, b = 0;
  const auto f = m::make_faults("moved@1/pe2", 2);
  EXPECT_TRUE(f->moves_memory());
  EXPECT_EQ(f->place_of(&a, 1), &a);
  EXPECT_NE(f->place_of(&b, 1), &b);
  EXPECT_NE(m::make_faults("moved", 0)->place_of(&a, 1), &a);
  EXPECT_FALSE(m::make_faults("moved@1/pe2", 0)->moves_memory());
}

TEST(faults, ops_that_only_seem_done) {
  const auto f = m::make_faults("skip@3,astray@4=4096/queue1", 0);
  const m::op o{};
  EXPECT_PAIRS((f->next(64, 2, o).what, injected::none), (f->next(64, 3, o).what, injected::skip),
               (f->next(64, 4, o).what, injected::none));
  const m::injected_fault hit = f->next(68, 4, o);
  EXPECT_PAIRS((hit.what, injected::astray), (hit.by, 4096u),
               (m::parse_faults("astray@4=-8").rules[0].by, ~std::uint64_t{7}));
}

TEST(faults, scope_by_pe) {
  const m::op o{};
  EXPECT_EQ(m::make_faults("down@0/pe1", 0)->next(64, 0, o).what, injected::none);
  EXPECT_EQ(m::make_faults("down@0/pe1", 1)->next(64, 0, o).what, injected::fail);
}

TEST(faults, same_seed_same_faults_and_the_chance_is_kept) {
  const auto draw = [](const char* text, std::uint32_t number) {
    const auto f = m::make_faults(text, 0, m::fault_level::frames);
    std::string out;
    for (int i = 0; i < 20'000; ++i) out += f->next_frame(number).drop ? '1' : '0';
    return out;
  };
  const std::string one = draw("drop=0.1,seed=5", 64);
  EXPECT_EQ(one, draw("drop=0.1,seed=5", 64));
  EXPECT_NE(one, draw("drop=0.1,seed=6", 64));
  EXPECT_NE(one, draw("drop=0.1,seed=5", 68));
  const auto hits = std::count(one.begin(), one.end(), '1');
  EXPECT_GT(hits, 1800);  // 2000, five standard deviations
  EXPECT_LT(hits, 2200);
}

TEST(faults, ops_are_late_or_lost_for_good) {
  const m::op o{};
  const auto always = m::make_faults("drop=1", 0);
  EXPECT_EQ(always->next(64, 0, o).how.what, m::outcome::retry_exceeded);
  const m::injected_fault late = m::make_faults("delay=1:2ms", 0)->next(64, 0, o);
  EXPECT_PAIRS((late.what, injected::delay), (late.wait, std::chrono::milliseconds(2)));
  // Frames take those over.
  EXPECT_EQ(m::make_faults("drop=1", 0, m::fault_level::frames)->next(64, 0, o).what, injected::none);
}

// As a NIC deals numbers out.
TEST(faults, a_queue_pair_is_the_kth_made_on_its_nic) {
  const auto f = m::make_faults("down@0/queue1", 0);
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u, 255u}) {
    m::nic n(std::make_unique<m::shm_fabric>(xio::gpu::payload(), std::uint64_t{1} << 20, seed), seed);
    std::vector<std::uint32_t> numbers;
    for (int i = 0; i < 3; ++i)
      numbers.push_back(n.create_queue([](std::uint32_t) { return std::unique_ptr<m::wire_queue>(); }));
    EXPECT_EQ(f->next(numbers[0], 0, m::op{}).what, injected::none) << seed;
    EXPECT_EQ(f->next(numbers[1], 0, m::op{}).what, injected::fail) << seed;
    EXPECT_EQ(f->next(numbers[2], 0, m::op{}).what, injected::none) << seed;
  }
}

}  // namespace
