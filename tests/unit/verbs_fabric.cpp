// SPDX-License-Identifier: MIT
// The verbs fabric's sentences: of memory that a device does not take, and of the device's events. libibverbs is this
// file's.
#include "proxy/verbs_fabric.hpp"
#include "refusal.hpp"

namespace {

struct device {
  int refusal = 0;  // errno of registering, 0: it registers
  ibv_mr mr{};
  std::deque<ibv_async_event> events{};
  int acknowledged = 0;
};
device g;

ibv_mr* taken() {
  errno = g.refusal;
  return g.refusal == 0 ? &g.mr : nullptr;
}

}  // namespace

extern "C" {
#undef ibv_reg_mr
ibv_mr* ibv_reg_mr(ibv_pd*, void*, size_t, int) { return taken(); }
// The macro ibv_reg_mr calls this one where the flags are not constants.
ibv_mr* ibv_reg_mr_iova2(ibv_pd*, void*, size_t, uint64_t, unsigned) { return taken(); }
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) { return taken(); }
int ibv_dereg_mr(ibv_mr*) { return 0; }
int ibv_get_async_event(ibv_context*, ibv_async_event* out) {
  if (g.events.empty()) return -1;
  *out = g.events.front();
  g.events.pop_front();
  return 0;
}
void ibv_ack_async_event(ibv_async_event*) { ++g.acknowledged; }
}

namespace xio::proxy {
namespace {

using test::expect_words;
using test::refusal;

verbs_port port() {
  verbs_port p{};
  p.identity.device = "mlx5_0";
  p.identity.port = 1;
  return p;
}

struct verbs_memory : testing::Test {
  void TearDown() override { g = {}; }
  // The sentence when a device refuses memory that was exported so.
  std::string refused(gpu::exported_memory memory, int err) {
    g.refusal = err;
    verbs_fabric f(port(), {}, nullptr, [&](void*, std::size_t) { return memory; });
    return refusal(err == ENOMEM ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, [&] { f.register_memory(buffer_, 64, 0); });
  }
  char buffer_[64];
};

TEST_F(verbs_memory, what_a_device_does_not_take_is_refused_with_its_own_cure) {
  const gpu::exported_memory in_pieces{-1, 0, "it lies in two pieces"};
  const std::string no = refused(in_pieces, EFAULT);
  expect_words(no, {"verbs mlx5_0 port 1", "it lies in two pieces"});
  EXPECT_EQ(no.find("peer-memory module"), std::string::npos) << no;
  expect_words(refused(in_pieces, ENOMEM), {"ulimit -l"});
  expect_words(refused({}, ENOMEM), {"ulimit -l"});
  expect_words(refused({}, EFAULT), {"it is not mapped"});
  expect_words(refused({dup(0), 0, ""}, EOPNOTSUPP), {"a driver that knows dma-buf"});
}

TEST_F(verbs_memory, a_peer_memory_module_takes_what_has_no_dma_buf) {
  verbs_fabric f(port(), {}, nullptr, [](void*, std::size_t) { return gpu::exported_memory{-1, 0, "no"}; });
  g.mr.lkey = 7;
  EXPECT_EQ(f.register_memory(buffer_, 64, 0).lkey, 7u);
}

// In turns of a machine that has nothing else to do. Two seconds are long for one that reads them a hundred times in
// each.
void poll_until_read(verbs_fabric& f) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (!g.events.empty() && std::chrono::steady_clock::now() < until) {
    f.poll();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_TRUE(g.events.empty()) << "events are not read in time";
}

// The log of a fabric that gets these events.
std::string logged(std::deque<ibv_async_event> events) {
  g = {};
  g.events = std::move(events);
  verbs_fabric f(port(), {}, nullptr, nullptr);
  testing::internal::CaptureStderr();
  poll_until_read(f);
  return testing::internal::GetCapturedStderr();
}

ibv_async_event event_of(ibv_event_type type, int of_port) {
  ibv_async_event e{};
  e.event_type = type;
  e.element.port_num = of_port;
  return e;
}

TEST(verbs_events, a_link_that_goes_down_and_up_is_said_with_the_way_back) {
  const std::string log = logged({event_of(IBV_EVENT_PORT_ERR, 1), event_of(IBV_EVENT_PORT_ACTIVE, 1)});
  expect_words(log, {"verbs mlx5_0 port 1: the link is down", "xio_ctx_recover", "the link is up"});
  EXPECT_EQ(g.acknowledged, 2) << "a device is not closed before";
}

TEST(verbs_events, other_ports_are_not_ours) {
  EXPECT_EQ(logged({event_of(IBV_EVENT_PORT_ERR, 2)}), "");
  EXPECT_EQ(g.acknowledged, 1);
}

TEST(verbs_events, a_device_that_has_failed_is_an_error_with_its_cure) {
  expect_words(logged({event_of(IBV_EVENT_DEVICE_FATAL, 0)}),
               {"error", "verbs mlx5_0", "has failed", "xio_ctx_recover", "the heap stays"});
}

TEST(verbs_events, only_a_fatal_event_makes_a_device_failed) {
  g = {};
  verbs_fabric f(port(), {}, nullptr, nullptr);
  g.events = {event_of(IBV_EVENT_PORT_ERR, 1), event_of(IBV_EVENT_LID_CHANGE, 1)};
  poll_until_read(f);
  EXPECT_FALSE(f.has_failed());
  g.events = {event_of(IBV_EVENT_DEVICE_FATAL, 0)};
  poll_until_read(f);
  EXPECT_TRUE(f.has_failed());
}

TEST(verbs_events, any_other_event_has_its_name) {
  expect_words(logged({event_of(IBV_EVENT_LID_CHANGE, 1)}), {"port 1", ibv_event_type_str(IBV_EVENT_LID_CHANGE)});
}

}  // namespace
}  // namespace xio::proxy
