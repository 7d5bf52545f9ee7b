// SPDX-License-Identifier: MIT
// Queues of the GPU's own copy engines, over a simulated driver: which calls it gets, in which order, and that
// everything is given back when any of them fails. On a machine without /dev/kfd also that the real one says so.
#include "gpu/gpu.hpp"
#include "refusal.hpp"
#include "topology/kfd_node.hpp"
#include "transport/sdma/kfd_engine.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::sdma {
namespace {

using xio::test::refusal;

constexpr const char* k_mine = "0000:c1:00.0";
constexpr const char* k_peer = "0000:c6:00.0";

// Records that outlive the driver.
struct ledger {
  std::vector<std::string> calls;
  std::map<void*, std::size_t> rings;
  std::map<std::uint64_t, engine_choice> queues;
  int most_of_engine_1 = 100;
  int fail_at = -1;  // the call that fails, counted from 0
  int count = 0;
  bool no_doorbell = false;
  gpu::place ring_place = gpu::place::shared;
  std::map<std::uint64_t, dev::ring_view> views;  // of queues whose engine is still at work when they go
  alignas(4096) std::uint64_t words[64] = {};     // numbers below 0x100 are of no engine's
  // Where given: the doorbells that queues get, by their numbers of a process's 1,024.
  struct alignas(4096) doorbell_page {
    std::uint64_t words[1024] = {};
  };
  std::unique_ptr<doorbell_page> page = std::make_unique<doorbell_page>();
  std::vector<unsigned> doorbells;
  std::size_t at_doorbell = 0;
  dev::ring_state last_state{};

  void step(const char* name) {
    calls.emplace_back(name);
    if (count++ == fail_at) fail(XIO_ERR_NO_MEMORY, "call {} fails on purpose", name);
  }
};

class fake_driver final : public kfd_driver {
 public:
  explicit fake_driver(ledger& l) : l_(l) {}
  ~fake_driver() override { l_.calls.emplace_back("close"); }
  const char* name() const override { return "a fake"; }
  std::vector<kfd_gpu> gpus() override {
    l_.step("gpus");
    const engine_facts facts{2, 14, 2, true};
    return {{4, k_mine, facts, {{0, {false, 0}}, {5, {true, 0b1010000}}}}, {5, k_peer, facts, {{4, {true, 0b100}}}}};
  }
  void* allocate_ring(std::uint32_t node, std::size_t bytes, gpu::place where) override {
    l_.step("allocate");
    EXPECT_EQ(node, 4u);
    l_.ring_place = where;
    void* p = std::aligned_alloc(gpu::page_size(), bytes);
    l_.rings[p] = bytes;
    return p;
  }
  void free_ring(void* ring, std::size_t bytes) noexcept override {
    EXPECT_PAIRS((l_.rings.count(ring), 1u), (l_.rings[ring], bytes));
    l_.rings.erase(ring);
    std::free(ring);
    l_.calls.emplace_back("free");
  }
  kfd_queue create_queue(std::uint32_t node, const engine_choice& engine, void* ring, std::size_t bytes) override {
    l_.step("create");
    EXPECT_EQ(node, 4u);
    if (engine.engine == 1 && static_cast<int>(l_.at_doorbell) >= l_.most_of_engine_1)
      fail(XIO_ERR_NO_MEMORY, "no queue is left");
    EXPECT_EQ(l_.rings[ring], bytes);
    const std::uint64_t id = 100 + l_.queues.size();
    l_.queues[id] = engine;
    if (l_.at_doorbell < l_.doorbells.size())
      return {id, &l_.page->words[l_.doorbells[l_.at_doorbell++]], &l_.words[1]};
    return {id, l_.no_doorbell ? nullptr : &l_.words[2 * (id - 100)], &l_.words[2 * (id - 100) + 1]};
  }
  void destroy_queue(std::uint64_t id) noexcept override {
    // The last fence of what a kernel left under way.
    if (const auto at_work = l_.views.find(id); at_work != l_.views.end()) {
      *reinterpret_cast<volatile std::uint32_t*>(at_work->second.sdma.completion) = at_work->second.depth;
      gpu::copy(&l_.last_state, at_work->second.state, sizeof l_.last_state);
    }
    EXPECT_EQ(l_.queues.erase(id), 1u);
    l_.calls.emplace_back("destroy");
  }

 private:
  ledger& l_;
};

std::unique_ptr<engine> open_fake(ledger& l, const options& o = options::defaults(), const char* arch = "gfx942",
                                  const char* bus_id = k_mine) {
  return open_kfd_engine(o, std::make_unique<fake_driver>(l), {arch, bus_id});
}

// A ring of one page of the system at least.
std::uint32_t depth() { return static_cast<std::uint32_t>(gpu::page_size() / 64); }

// Two partitions of one GPU have one bus id; queues and links are those of the node.
TEST(sdma_kfd, partitions_of_one_gpu_are_different_devices) {
  class partitioned final : public kfd_driver {
   public:
    explicit partitioned(std::vector<std::uint32_t>& nodes) : nodes_(nodes) {}
    const char* name() const override { return "a fake"; }
    std::vector<kfd_gpu> gpus() override {
      const engine_facts facts{2, 2, 2, true};
      return {{2, "0000:c1:00.0#2", facts, {{3, {true, 0b0100}}}}, {3, "0000:c1:00.0#3", facts, {{2, {true, 0b1000}}}}};
    }
    void* allocate_ring(std::uint32_t, std::size_t bytes, gpu::place) override {
      return std::aligned_alloc(gpu::page_size(), bytes);
    }
    void free_ring(void* ring, std::size_t) noexcept override { std::free(ring); }
    kfd_queue create_queue(std::uint32_t node, const engine_choice& engine, void*, std::size_t) override {
      nodes_.push_back(node);
      nodes_.push_back(engine.engine);
      return {1, words_, words_ + 1};
    }
    void destroy_queue(std::uint64_t) noexcept override {}

   private:
    std::vector<std::uint32_t>& nodes_;
    alignas(4096) std::uint64_t words_[2] = {};
  };
  std::vector<std::uint32_t> made;
  auto e = open_kfd_engine(options::defaults(), std::make_unique<partitioned>(made), {"gfx942", "0000:c1:00.0#3"});
  e->set_peers({"0000:c1:00.0#2", "0000:c1:00.0#3"});
  e->create_queue({depth(), 0, 0, 0, false});
  EXPECT_EQ(made, (std::vector<std::uint32_t>{3, 3})) << "node 3, by the engine for its link to node 2";
}

TEST(sdma_kfd, a_queue_is_made_of_the_drivers_parts_and_goes_back) {
  ledger l;
  auto e = open_fake(l);
  EXPECT_STREQ(e->backend(), "KFD gfx942 at 0000:c1:00.0, queues by a fake");
  e->set_peers({k_mine, k_peer, ""});
  auto q = e->create_queue({depth(), 0, 1, 1, false});
  ASSERT_EQ(l.queues.size(), 1u);
  EXPECT_EQ(l.queues[100].kind, queue_kind::by_engine);
  EXPECT_EQ(l.queues[100].engine, 6u);  // the second of 0b1010000
  const dev::ring_view v = q->view();
  EXPECT_PAIRS((v.slots, l.rings.begin()->first), (v.sdma.doorbell, &l.words[0]), (v.sdma.write_pointer, &l.words[1]),
               (v.id, 100u), (v.depth, depth()), (v.sdma.generation, wire::sdma::gen_9_4), (v.chunk, (1u << 22) - 32));
  EXPECT_EQ(l.words[0], 0u);  // no doorbell before there is work
  // To itself, to another machine's PE, to nobody: engines for PCIe.
  auto own = e->create_queue({depth(), 0, 0, 0, false});
  auto peer = e->create_queue({depth(), 0, 2, 0, false});
  auto any = e->create_queue({depth(), 0, -1, 0, true});
  for (const std::uint64_t id : {101u, 102u, 103u}) EXPECT_EQ(l.queues[id].kind, queue_kind::pcie);
  EXPECT_EQ(any->view().alone, 1u);
  // Queues may outlive the engine, and the driver outlives them.
  e.reset();
  EXPECT_NE(l.calls.back(), "close");
  l.calls.clear();
  any.reset();
  EXPECT_EQ(l.calls, (std::vector<std::string>{"destroy", "free"}));
  own.reset(), peer.reset(), q.reset();
  EXPECT_TRUE(l.rings.empty() && l.queues.empty());
  EXPECT_EQ(l.calls.back(), "close");
}

// AddressSanitizer sees what is written to that has gone.
TEST(sdma_kfd, an_engine_at_work_ends_before_what_it_writes_to_goes) {
  ledger l;
  auto e = open_fake(l);
  auto q = e->create_queue({depth(), 0, -1, 0, false});
  l.views[100] = q->view();
  q.reset();
  EXPECT_PAIRS((l.calls.back(), "free"), (l.last_state.credits, static_cast<std::int64_t>(depth())));
}

TEST(sdma_kfd, whatever_fails_everything_goes_back) {
  for (int at = 0; at < 3; ++at) {
    ledger l;
    l.fail_at = at;
    EXPECT_THROW(
        {
          auto e = open_fake(l);
          e->create_queue({depth(), 0, -1, 0, false});
        },
        error)
        << at;
    EXPECT_TRUE(l.rings.empty() && l.queues.empty()) << at;
    EXPECT_EQ(l.calls.back(), "close") << at;
  }
  ledger l;
  l.no_doorbell = true;
  auto e = open_fake(l);
  EXPECT_THROW(e->create_queue({depth(), 0, -1, 0, false}), error);
  EXPECT_TRUE(l.rings.empty() && l.queues.empty());
  // The place on the engine went back as well: 2 engines for PCIe of 2 queues each are all free.
  l.no_doorbell = false;
  std::vector<std::unique_ptr<queue>> all;
  for (int i = 0; i < 4; ++i) all.push_back(e->create_queue({depth(), 0, -1, 0, false}));
  EXPECT_THROW(e->create_queue({depth(), 0, -1, 0, false}), error);
  all.pop_back();
  EXPECT_NO_THROW(e->create_queue({depth(), 0, -1, 0, false}));
}

// Numbers: 0x100 + 10 * engine + queue / 2, and 512 more for odd queues; see is_lost_doorbell. XIO_SDMA_ENGINES asks
// for engine 1, or for that and then 2, and the driver has so many queues.
TEST(sdma_kfd, queues_that_kernels_cannot_ring_hold_their_places_until_there_is_another) {
  const struct {
    const char* arch;
    const char* engines;
    std::vector<unsigned> doorbells;
    int most;   // queues of engine 1
    int taken;  // of these by number; -1: none, an error
    std::ptrdiff_t given_back;
  } rows[] = {
      {"gfx942", "1", {0x10a, 0x30a, 0x10b, 0x30b, 0x10c}, 9, 4, 4},
      {"gfx942", "1", {0x10c}, 9, 0, 0},
      {"gfx942", "0", {0x100}, 9, 0, 0},
      {"gfx942", "1", {0x10a, 0x30b}, 2, -1, 2},
      {"gfx942", "1,2", {0x10a, 0x114}, 1, 1, 1},
      {"gfx950", "3", {0x31f, 0x11e, 0x120}, 9, 2, 2},
      {"gfx90a", "1", {0x10a}, 9, 0, 0},
      {"gfx1100", "1", {0x10a}, 9, 0, 0},
  };
  for (const auto& row : rows) {
    ledger l;
    l.doorbells = row.doorbells;
    l.most_of_engine_1 = row.most;
    options o = options::defaults();
    o.sdma_engines = row.engines;
    auto e = open_fake(l, o, row.arch);
    std::unique_ptr<queue> q;
    if (row.taken < 0) {
      const std::string sentence = refusal(XIO_ERR_NO_MEMORY, [&] { q = e->create_queue({depth(), 0, -1, 0, false}); });
      EXPECT_NE(sentence.find("6.12.113"), std::string::npos) << sentence;
      EXPECT_TRUE(l.queues.empty() && l.rings.empty());
    } else {
      ASSERT_NO_THROW(q = e->create_queue({depth(), 0, -1, 0, false})) << row.engines;
      EXPECT_EQ(q->view().sdma.doorbell, &l.page->words[row.doorbells[static_cast<std::size_t>(row.taken)]]);
      EXPECT_EQ(l.queues.size(), 1u);
    }
    EXPECT_EQ(std::count(l.calls.begin(), l.calls.end(), "destroy"), row.given_back) << row.arch << " " << row.engines;
    EXPECT_EQ(l.rings.size(), l.queues.size());
  }
}

TEST(sdma_kfd, what_hardware_cannot_is_refused) {
  ledger l;
  auto e = open_fake(l);
  const auto says = [&](const queue_request& r, xio_status_t status, const char* word) {
    const std::string sentence = refusal(status, [&] { e->create_queue(r); });
    EXPECT_NE(sentence.find(word), std::string::npos) << sentence;
  };
  says({4, 0, -1, 0, false}, XIO_ERR_CONFIG, "whole page");
  says({depth() * 2 - 1, 0, -1, 0, false}, XIO_ERR_CONFIG, "whole page");
  says({depth(), depth(), -1, 0, false}, XIO_ERR_UNSUPPORTED, "XIO_TICKET_START");
  EXPECT_TRUE(l.rings.empty() && l.queues.empty());
  int mine = 0;  // which no GPU runtime knows
  test::expect_words(refusal(XIO_ERR_UNSUPPORTED, [&] { e->map(&mine, sizeof mine); }), {"hipHostRegister"});
  refusal(XIO_ERR_UNSUPPORTED, [&] { open_fake(l, options::defaults(), "gfx1250"); });
  refusal(XIO_ERR_UNSUPPORTED, [&] { open_fake(l, options::defaults(), "gfx942", "0000:00:00.0"); });
  options o = options::defaults();
  o.sdma_engines = "16";
  refusal(XIO_ERR_CONFIG, [&] { open_fake(l, o); });
  o = options::defaults();
  o.memory_mode = 4;
  EXPECT_NE(refusal(XIO_ERR_UNSUPPORTED, [&] { open_fake(l, o); }).find("doorbell is a register"), std::string::npos);
  o.memory_mode = 1;
  e = open_fake(l, o);
  auto q = e->create_queue({depth(), 0, -1, 0, false});
  EXPECT_EQ(l.ring_place, gpu::place::device);
}

TEST(sdma_kfd, the_real_drivers_say_what_is_missing) {
  if (access("/dev/kfd", R_OK | W_OK) == 0) {
    EXPECT_NO_THROW(open_kfd(option::sdma_queues_by::automatic));
    return;
  }
  for (const auto by :
       {option::sdma_queues_by::automatic, option::sdma_queues_by::kernel, option::sdma_queues_by::hsakmt}) {
    const std::string sentence = refusal(XIO_ERR_UNSUPPORTED, [&] { open_kfd(by); });
    EXPECT_TRUE(sentence.find("/dev/kfd") != std::string::npos || sentence.find("libhsakmt-dev") != std::string::npos)
        << sentence;
    // One sentence: no line break, and it ends without a second one.
    EXPECT_EQ(sentence.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace xio::sdma
