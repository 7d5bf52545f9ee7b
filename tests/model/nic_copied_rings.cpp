// SPDX-License-Identifier: MIT
// Queues in memory that the NIC's thread cannot touch, as a GPU's is: every family's decoder gets addresses at which
// nothing can be loaded or stored, and an agent that copies between these and where the device posts. Host threads are
// waves of one lane here, so this runs on the host platform only; nic_wave does it on GPUs.
#include "../gtest.hpp"
#include "nic_rig.hpp"
#include "proxy/nic.hpp"
#include "proxy/shm_executor.hpp"
#include "transport/rdma/families.hpp"
#include "xio/device/impl/rdma.hpp"

namespace {

using namespace xio::dev;
namespace m = xio::proxy;
namespace rdma = xio::dev::rdma;
using xio::gpu::buffer;
using xio::gpu::place;

// Memory with a second address, which is nobody's to touch.
class copied_memory {
 public:
  explicit copied_memory(std::size_t bytes) : backing_(bytes, place::shared), bytes_(bytes) {
    void* range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) throw std::bad_alloc();
    device_range_ = static_cast<unsigned char*>(range);
    all().push_back(this);
  }
  ~copied_memory() {
    std::erase(all(), this);
    munmap(device_range_, bytes_);
  }
  copied_memory& operator=(copied_memory&&) = delete;

  unsigned char* backing() const { return backing_.as<unsigned char>(); }
  unsigned char* device_range() const { return device_range_; }
  std::size_t size() const { return bytes_; }

  // Copies words, or bytes, as an engine does that nobody waits for by the bus: what others look at meanwhile is whole.
  static const xio::payload_agent& agent() {
    static constexpr xio::payload_agent by_copies{&copy, nullptr, nullptr};
    return by_copies;
  }
  static inline std::atomic<int> copies{0};

 private:
  static std::vector<copied_memory*>& all() {
    static std::vector<copied_memory*> list;
    return list;
  }
  static unsigned char* reach(const void* p, std::size_t bytes) {
    auto* at = static_cast<unsigned char*>(const_cast<void*>(p));
    for (const copied_memory* f : all())
      if (at >= f->device_range_ && at < f->device_range_ + f->bytes_) {
        EXPECT_LE(at + bytes, f->device_range_ + f->bytes_);
        return f->backing() + (at - f->device_range_);
      }
    return at;
  }
  static void copy(void* to, const void* from, std::size_t bytes) {
    ++copies;
    auto* t = reinterpret_cast<u32*>(reach(to, bytes));
    auto* f = reinterpret_cast<const u32*>(reach(from, bytes));
    ASSERT_EQ(bytes % 4, 0u);
    for (std::size_t i = 0; i < bytes / 4; ++i)
      __atomic_store_n(t + i, __atomic_load_n(f + i, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
  }

  buffer backing_;
  unsigned char* device_range_ = nullptr;
  std::size_t bytes_;
};

struct shape {
  std::string family;
  u32 depth;
  u64 ticket_start;
  bool copied_entries, copied_completions;
};

void PrintTo(const shape& s, std::ostream* out) {
  *out << s.family << " depth " << s.depth << " from " << s.ticket_start << (s.copied_entries ? " entries" : "")
       << (s.copied_completions ? " completions" : "");
}

// One queue to PE 1, whose heap has an address of its own.
class copied_rig {
 public:
  static constexpr std::size_t k_bytes = 1 << 20;
  static constexpr u64 k_remote = 0x7000'0000'0000;
  static constexpr u32 k_rkey = 0xabc00, k_mtu = 1024, k_scratch = 64;

  explicit copied_rig(const shape& s)
      : family_(xio::rdma::find_family(s.family)),
        cq_depth_(xio::proxy::completion_depth(family_, s.depth, 0)),
        mine_(k_bytes, place::shared),
        theirs_(k_bytes, place::shared),
        scratch_(k_scratch * 8, place::shared),
        used_(8, place::device),
        state_(sizeof(ring_state), place::device),
        marks_(s.depth * sizeof(u64), place::device),
        slots_(s.depth * std::size_t{family_.slot_bytes} + family_.aux_bytes(s.depth)),
        completion_(family_.completion_bytes(cq_depth_)),
        bells_(3 * 128, place::shared),
        nic_(fabric(), 5),
        machine_(1) {
    const auto local = m::local_read | m::local_write;
    slots_lkey_ = nic_.register_memory(slots_.backing(), slots_.size(), m::local_read).lkey;
    ring_.rdma.scratch_lkey = nic_.register_memory(scratch_.data(), scratch_.size(), local).lkey;
    world_.regions[0] = {reinterpret_cast<u64>(mine()),
                         k_bytes,
                         {},
                         {nic_.register_memory(mine(), k_bytes, local).lkey},
                         1,
                         0,
                         0,
                         {},
                         {}};
    lay_out(s);
    connect(s);
    show();
    machine_.add(&nic_);
  }
  ~copied_rig() { machine_.remove(&nic_); }

  unsigned char* mine() { return mine_.as<unsigned char>(); }
  unsigned char* theirs() { return theirs_.as<unsigned char>(); }
  const ctx_view& c() const { return ctx_; }
  ring_view& ring() { return ring_; }
  const ring_state& state() const { return *state_.as<ring_state>(); }
  xio_status_t wait(xio_req_t request) {
    return request == 0 ? XIO_OK : wait_ring(ring_, request_ticket(ring_, request) + 1, world_);
  }

 private:
  std::unique_ptr<m::fabric> fabric() {
    auto f = std::make_unique<m::shm_fabric>(xio::gpu::payload(), k_bytes, 5);
    f->adopt(1, k_rkey, {k_remote, k_bytes, theirs(), m::remote_read | m::remote_write | m::remote_atomic});
    return f;
  }

  void lay_out(const shape& s) {
    ring_.state = state_.as<ring_state>();
    ring_.marks = marks_.as<u64>();
    ring_.slots = slots_.backing();
    ring_.depth = s.depth;
    ring_.kind = family_.kind;
    ring_.chunk = 1000;
    ring_.index = 1;
    rdma_ring& r = ring_.rdma;
    r.completions = completion_.backing();
    r.depth_log2 = lowest_bit(s.depth);
    r.cq_depth = cq_depth_;
    r.cq_depth_log2 = cq_depth_ == 0 ? 0 : lowest_bit(cq_depth_);
    r.doorbell = bells_.as<u64>() + 16;
    r.remote_heap = k_remote;
    r.remote_key = k_rkey;
    r.atomics = static_cast<std::uint16_t>(family_.atomics);
    r.inline_bytes = family_.inline_bytes;
    r.gather_bytes = family_.gather_bytes;
    set_fields(ring_, slots_.backing());
  }
  void set_fields(ring_view& v, unsigned char* slots) {
    u64* bells = bells_.as<u64>();
    family_.set_fields(v.rdma, {slots + v.depth * std::size_t{family_.slot_bytes}, reinterpret_cast<u32*>(bells) + 1,
                                bells + 32, k_mtu, slots_lkey_});
  }

  // The decoder's view has the addresses that cannot be touched.
  void connect(const shape& s) {
    xio::proxy::queue_plan plan{s.ticket_start, k_bytes, k_mtu, 0xfffff0};
    plan.entries = m::ring_memory(s.copied_entries ? &copied_memory::agent() : nullptr);
    plan.completions = m::ring_memory(s.copied_completions ? &copied_memory::agent() : nullptr);
    ring_state& state = *state_.as<ring_state>();
    state.issued = state.published = state.completed = s.ticket_start;
    state.credits = s.depth;
    family_.prepare(
        ring_, {slots_.backing(), slots_.backing() + s.depth * std::size_t{family_.slot_bytes}, completion_.backing()},
        state, plan);
    ring_view seen = ring_;
    if (s.copied_entries) {
      seen.slots = slots_.device_range();
      set_fields(seen, seen.slots);
    }
    if (s.copied_completions) seen.rdma.completions = completion_.device_range();
    ring_.id = nic_.create_queue([&](u32 number) { return family_.decode(seen, plan, number); });
    nic_.connect(ring_.id, 1, {}, 0);
  }

  void show() {
    world_.n_pes = 2;
    world_.heap = mine();
    world_.heap_bytes = k_bytes;
    world_.ticks_per_ms = xio::gpu::ticks_per_ms();
    world_.timeout_ticks = 10000 * world_.ticks_per_ms;
    peers_[1].rdma_count = 1;
    peers_[1].small = peers_[1].bulk = peers_[1].atomic = route::rdma;
    peers_[1].rdma = &ring_;
    ctx_.world = &world_;
    ctx_.peers = peers_;
    ctx_.rings = rings_;
    ctx_.ring_count = 2;
    ctx_.scratch_count = k_scratch;
    ctx_.scratch = scratch_.as<u64>();
    ctx_.scratch_used = used_.as<u64>();
  }

  const xio::proxy::family& family_;
  const u32 cq_depth_;
  buffer mine_, theirs_, scratch_, used_, state_, marks_;
  copied_memory slots_, completion_;
  buffer bells_;
  m::nic nic_;
  u32 slots_lkey_ = 0;
  ring_view rings_[2]{};
  ring_view& ring_ = rings_[1];
  world_view world_{};
  peer_view peers_[2]{};
  ctx_view ctx_{};
  xio::progress::machine machine_;
};

struct nic_copied_rings : testing::TestWithParam<shape> {
  void SetUp() override {
    xio::gpu::init(0);
    rig = std::make_unique<copied_rig>(GetParam());
  }
  std::unique_ptr<copied_rig> rig;
};

std::vector<shape> shapes() {
  std::vector<shape> all;
  for (const char* family : xio::test::k_families) {
    all.push_back({family, 8, (u64{1} << 16) - 8, true, true});
    all.push_back({family, 4, (u64{1} << 32) - 8, true, false});
    all.push_back({family, 16, 0, false, true});
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(families, nic_copied_rings, testing::ValuesIn(shapes()));

TEST_P(nic_copied_rings, puts_gets_values_and_atomics) {
  copied_memory::copies = 0;
  auto* word = reinterpret_cast<u64*>(rig->theirs() + 512);
  u64 sum = 0;
  for (u32 i = 1; i <= 400; ++i) {
    const std::size_t n = i * 7;
    xio_req_t request;
    for (std::size_t b = 0; b < n; ++b) rig->mine()[4096 + b] = static_cast<unsigned char>(b * 131 + i + (b >> 8));
    std::memset(rig->theirs() + 4096, 0xee, n + 64);
    ASSERT_EQ(rdma::put(rig->c(), 1, 4099, rig->mine() + 4096, n, &request), XIO_OK);
    ASSERT_EQ(rig->wait(request), XIO_OK) << i;
    ASSERT_EQ(std::memcmp(rig->theirs() + 4099, rig->mine() + 4096, n), 0) << n;
    ASSERT_EQ(rig->theirs()[4098], 0xee);
    ASSERT_EQ(rig->theirs()[4099 + n], 0xee);
    ASSERT_EQ(rdma::get(rig->c(), 1, rig->mine() + 65537, 4099, n, &request), XIO_OK);
    ASSERT_EQ(rig->wait(request), XIO_OK) << i;
    ASSERT_EQ(std::memcmp(rig->mine() + 65537, rig->mine() + 4096, n), 0) << n;
    u64 old = ~u64{0};
    ASSERT_EQ(rdma::atomic(rig->c(), 1, {512, 8, amo::add, i, 0}, true, &old), XIO_OK);
    ASSERT_EQ(old, sum);
    sum += i;
  }
  EXPECT_EQ(*word, sum);
  EXPECT_EQ(rig->state().failed, 0u) << "vendor " << rig->state().vendor;
  EXPECT_EQ(rig->state().issued, rig->state().completed);
  EXPECT_GT(copied_memory::copies, 400);
}

// Entries posted behind the failure are dropped, and every family reports it.
TEST_P(nic_copied_rings, a_failure_is_reported_and_what_follows_is_not) {
  std::memset(rig->theirs(), 0xee, 8192);
  xio_req_t good, bad, behind;
  ASSERT_EQ(rdma::put(rig->c(), 1, 0, rig->mine(), 100, &good), XIO_OK);
  ASSERT_EQ(rig->wait(good), XIO_OK);
  rig->ring().rdma.remote_key ^= 0x100;
  ASSERT_EQ(rdma::put(rig->c(), 1, 4096, rig->mine(), 100, &bad), XIO_OK);
  rig->ring().rdma.remote_key ^= 0x100;
  const xio_status_t posted = rdma::put(rig->c(), 1, 4096, rig->mine(), 100, &behind);
  EXPECT_TRUE(posted == XIO_OK || posted == XIO_ERR_TRANSPORT);
  EXPECT_PAIRS((rig->wait(bad), XIO_ERR_TRANSPORT), (rig->wait(good), XIO_OK));
  if (posted == XIO_OK) {
    EXPECT_EQ(rig->wait(behind), XIO_ERR_TRANSPORT);
  }
  EXPECT_EQ(rig->theirs()[4096], 0xee);
}

}  // namespace
