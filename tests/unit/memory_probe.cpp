// SPDX-License-Identifier: MIT
// A NIC that has registered memory and reaches another one is found before any op goes there.
#include "transport/rdma/memory_probe.hpp"
#include "config.h"
#include "proxy/keys.hpp"
#include "thread_worlds.hpp"

namespace {

using xio::options;
using xio::world;
using xio::rdma::probe_memory;
using xio::rdma::probe_verdict;
using namespace xio::test;
namespace p = xio::proxy;

// --- The probe on a NIC of which each direction is set -----------------------------------------------

struct nic_plan {
  unsigned char* reads_from;  // where the NIC finds what is registered, when it reads and when it writes
  unsigned char* writes_to;
  bool connects = true, completes = true;
  p::op_error how{};
  bool forgotten = false;
};

constexpr std::uint32_t k_lkey = 0x101, k_rkey = 0x202;
alignas(8) unsigned char g_memory[xio::rdma::k_probe_bytes], g_elsewhere[xio::rdma::k_probe_bytes];

class planned_executor final : public p::executor {
 public:
  explicit planned_executor(nic_plan& plan) : plan_(plan) {}
  bool begin(const p::op& o) override {
    EXPECT_PAIRS((o.what, p::verb::write), (o.span_count, 1u), (o.spans[0].key, k_lkey), (o.remote_key, k_rkey),
                 (o.spans[0].bytes, o.bytes));
    const auto base = reinterpret_cast<std::uint64_t>(g_memory);
    if (!plan_.how)
      std::memcpy(plan_.writes_to + (o.remote - base), plan_.reads_from + (o.spans[0].address - base), o.bytes);
    return true;
  }
  std::uint64_t advance(std::uint64_t) override { return 0; }
  bool ended(p::op_error* how) override {
    *how = plan_.how;
    return plan_.completes;
  }

 private:
  nic_plan& plan_;
};

class planned_fabric final : public p::fabric {
 public:
  explicit planned_fabric(nic_plan& plan) : plan_(plan) {}
  const char* name() const override { return "planned"; }
  std::uint64_t max_message() const override { return 1 << 20; }
  p::key_pair register_memory(void*, std::uint64_t, std::uint32_t) override { return {}; }
  void unregister_memory(const p::key_pair&) override {}
  p::device_address get_address() override { return {}; }
  void connect_peers(const std::vector<p::device_address>&) override {}
  p::device_address get_queue_address(std::uint32_t, int pe) override {
    EXPECT_EQ(pe, 3);
    return {std::byte{9}};
  }
  std::unique_ptr<p::executor> connect(std::uint32_t, int pe, const p::device_address& remote, std::uint32_t) override {
    EXPECT_EQ(pe, 3);
    EXPECT_EQ(remote, p::device_address{std::byte{9}}) << "the queue pair is connected to itself";
    if (!plan_.connects) xio::fail(XIO_ERR_IO, "the port takes no queue pair to itself");
    return std::make_unique<planned_executor>(plan_);
  }
  void forget(std::uint32_t) override { plan_.forgotten = true; }
  bool poll() override { return false; }

 private:
  nic_plan& plan_;
};

xio::rdma::probe_result probed(nic_plan plan) {
  planned_fabric f(plan);
  const auto r = probe_memory([&](const auto& use) { use(f); }, 3, {g_memory, {k_lkey, k_rkey}}, xio::gpu::payload(),
                              std::chrono::milliseconds(20));
  EXPECT_TRUE(plan.forgotten) << "the queue pair stays";
  return r;
}

TEST(memory_probe, takes_a_nic_that_reaches_the_memory) {
  EXPECT_EQ(probed({g_memory, g_memory}).verdict, probe_verdict::same);
}

TEST(memory_probe, sees_each_direction_by_itself) {
  EXPECT_EQ(probed({g_elsewhere, g_memory}).verdict, probe_verdict::different) << "what kernels store is not read";
  EXPECT_EQ(probed({g_memory, g_elsewhere}).verdict, probe_verdict::different) << "what the NIC writes is not seen";
  EXPECT_EQ(probed({g_elsewhere, g_elsewhere}).verdict, probe_verdict::different);
}

// Nothing is known of the memory then, and the NIC may be well.
TEST(memory_probe, blames_no_memory_where_the_op_does_not_end_well) {
  const auto late = probed({g_memory, g_memory, true, false});
  EXPECT_EQ(late.verdict, probe_verdict::unknown);
  EXPECT_PRED2(says, late.why, "20 ms");
  const auto failed = probed({g_memory, g_memory, true, true, {p::outcome::retry_exceeded, p::rule::link_lost}});
  EXPECT_EQ(failed.verdict, probe_verdict::unknown);
  const auto alone = probed({g_memory, g_memory, false});
  EXPECT_EQ(alone.verdict, probe_verdict::unknown);
  EXPECT_PRED2(says, alone.why, "takes no queue pair to itself");
}

// --- A world whose software NIC finds other memory in its heap's place -------------------------------

options moved_on_pe_1(xio::option::nic_executor by) {
  options o = options::defaults();
  o.heap_size = 1 << 20;
  o.ring_depth = 16;
  o.nic_executor = by;
  o.model_faults = "moved/pe1";
  return o;
}

void expect_refused(const options& o) {
  in_world(2, o, [](int pe, world& w) {
    const auto no = outcome_of([&] { make_ctx(w, XIO_ROUTE_RDMA); });
    expect_outcome(no, pe == 1 ? XIO_ERR_UNSUPPORTED : no.status,
                   {"does not reach the memory that kernels see", "XIO_HEAP_KIND=host", pe == 0 ? "PE 1" : ""});
    // Routes without the NIC are as before.
    w.contexts().destroy(make_ctx(w, XIO_ROUTE_DIRECT));
  });
}

TEST(memory_probe, refuses_a_nic_by_shared_memory) { expect_refused(moved_on_pe_1(xio::option::nic_executor::shm)); }

TEST(memory_probe, refuses_a_nic_over_tcp) { expect_refused(moved_on_pe_1(xio::option::nic_executor::tcp)); }

}  // namespace
