// SPDX-License-Identifier: MIT
// Queue pairs of devices that have no room for all that they name: what is made instead, and what is said if nothing.
#include "proxy/verbs_queue.hpp"
#include "refusal.hpp"

namespace {

// 64-byte units of a send queue in all, and the bytes of a request before its spans or inline bytes.
struct device {
  std::uint32_t units, overhead;
  ibv_qp qp{};
  ibv_cq cq{};
  ibv_mr mr{};
  ibv_qp_cap made{};
  int refusal = EINVAL;  // errno where there is no room
  int refused = 0;
  int cq_most = 4194303;    // entries
  int cq_refusal = EINVAL;  // errno where they are more
  std::vector<int> cq_asked{};
  int cqs = 0, most_cqs = 0;  // now, and ever at once
  int qps_asked = 0;
  int made_cqe = 0;  // of the send queue of the queue pair that was made
};
device* g_device = nullptr;

std::uint32_t up(std::uint32_t n, std::uint32_t to) { return (n + to - 1) / to * to; }

// rdma-core providers/mlx5/verbs.c: mlx5_calc_send_wqe, mlx5_calc_sq_size.
bool fits(const device& d, const ibv_qp_cap& c) {
  const std::uint32_t inlined = c.max_inline_data != 0 ? up(4 + c.max_inline_data, 16) : 0;
  const std::uint32_t request = up(d.overhead + std::max(inlined, 16 * c.max_send_sge), 64);
  std::uint64_t bytes = 64;
  while (bytes < std::uint64_t{c.max_send_wr} * request) bytes *= 2;
  return bytes / 64 <= d.units;
}

}  // namespace

// libibverbs has no way to give its own functions another device.
extern "C" {
#undef ibv_reg_mr
ibv_mr* ibv_reg_mr(ibv_pd*, void*, size_t, int) { return &g_device->mr; }
int ibv_dereg_mr(ibv_mr*) { return 0; }
ibv_cq* ibv_create_cq(ibv_context*, int entries, void*, ibv_comp_channel*, int) {
  device& d = *g_device;
  d.cq_asked.push_back(entries);
  if (entries > d.cq_most) {
    errno = d.cq_refusal;
    return nullptr;
  }
  d.most_cqs = std::max(d.most_cqs, ++d.cqs);
  d.cq.cqe = entries;
  return &d.cq;
}
int ibv_destroy_cq(ibv_cq*) {
  --g_device->cqs;
  errno = EBUSY;  // not what a refusal is judged by
  return 0;
}
ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr* a) {
  ++g_device->qps_asked;
  if (!fits(*g_device, a->cap)) {
    ++g_device->refused;
    errno = g_device->refusal;
    return nullptr;
  }
  g_device->made = a->cap;
  g_device->made_cqe = a->send_cq->cqe;
  return &g_device->qp;
}
int ibv_destroy_qp(ibv_qp*) { return 0; }
int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) { return 0; }
}

namespace xio::proxy {
namespace {

// The limits that a ConnectX names, each for itself.
struct rig {
  device d;
  ibv_context context{};
  verbs_port port{};
  verbs_path path{};

  explicit rig(std::uint32_t units, std::uint32_t depth) : d{units, 192} {
    g_device = &d;
    context.ops.post_recv = [](ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
    d.qp.context = &context;
    d.qp.qp_num = 17;
    port.identity.device = "mlx5_0";
    port.identity.port = 1;
    port.max_wr = 32768;
    port.max_sge = 30;
    port.max_cqe = 4194303;
    path.depth = depth;
  }
};

TEST(verbs_queue, what_has_room_is_made_as_it_was_asked_for) {
  rig r(32768, 2048);
  const verbs_queue q(r.port, r.path, 1, nullptr);
  EXPECT_PAIRS((q.depth(), 2048u), (q.max_sge(), 30u), (q.max_inline(), 256u));
}

TEST(verbs_queue, deep_queues_take_fewer_spans_a_request) {
  for (const std::uint32_t depth : {4096u, 8192u}) {
    rig r(32768, depth);
    const verbs_queue q(r.port, r.path, 1, nullptr);
    EXPECT_EQ(q.depth(), depth);
    EXPECT_GE(q.max_sge(), 1u);
    EXPECT_LT(q.max_sge(), 30u);
    EXPECT_PAIRS((q.max_sge(), r.d.made.max_send_sge), (q.max_inline(), r.d.made.max_inline_data));
  }
}

TEST(verbs_queue, the_deepest_hold_what_the_device_has_room_for) {
  for (const std::uint32_t depth : {16384u, 32768u}) {
    rig r(32768, depth);
    const verbs_queue q(r.port, r.path, 1, nullptr);
    EXPECT_PAIRS((q.depth(), 8192u), (r.d.made.max_send_wr, 8192u));
  }
}

TEST(verbs_queue, a_device_that_names_no_spans_or_one_gets_one) {
  for (const std::uint32_t spans : {0u, 1u}) {
    for (const std::uint32_t depth : {2048u, 32768u}) {
      rig r(32768, depth);
      r.port.max_sge = spans;
      const verbs_queue q(r.port, r.path, 1, nullptr);
      EXPECT_PAIRS((q.max_sge(), 1u), (r.d.made.max_send_sge, 1u), (q.depth(), std::min(depth, 8192u)));
    }
  }
}

// Returns what a queue pair of `depth` logs when it is made.
std::string log_of(int refusal, std::uint32_t depth) {
  rig r(32768, depth);
  r.d.refusal = refusal;
  testing::internal::CaptureStderr();
  const verbs_queue q(r.port, r.path, 1, nullptr);
  return testing::internal::GetCapturedStderr();
}

TEST(verbs_queue, less_depth_or_memory_than_was_asked_for_is_a_warning) {
  const std::string none = log_of(EINVAL, 2048), spans = log_of(EINVAL, 8192), depth = log_of(EINVAL, 16384);
  EXPECT_PAIRS((none, ""), (spans, ""));
  test::expect_words(depth, {"mlx5_0:1", "8192 send requests of 1 spans instead of 16384 of 30"});
  EXPECT_EQ(depth.find("ulimit"), std::string::npos) << depth;
  for (const std::uint32_t d : {8192u, 16384u}) {
    const std::string memory = log_of(ENOMEM, d);
    test::expect_words(memory, {"8192 send requests of", "locked memory (ulimit -l)"});
  }
}

using sizes = std::vector<int>;

TEST(verbs_queue, the_completion_queue_shrinks_with_the_sends) {
  rig r(32768, 32768);
  {
    const verbs_queue q(r.port, r.path, 1, nullptr);
    EXPECT_PAIRS((q.depth(), 8192u), (r.d.made_cqe, 8192), (r.d.cq_asked, (sizes{32768, 16384, 8192})), (r.d.cqs, 1));
    EXPECT_EQ(r.d.most_cqs, 1) << "the larger one goes first: the device may need its room";
  }
  EXPECT_EQ(r.d.cqs, 0);
}

TEST(verbs_queue, fewer_spans_alone_leave_the_completion_queue_as_it_is) {
  rig r(32768, 8192);
  const verbs_queue q(r.port, r.path, 1, nullptr);
  EXPECT_LT(q.max_sge(), 30u);
  EXPECT_PAIRS((r.d.cq_asked, sizes{8192}), (r.d.made_cqe, 8192));
}

TEST(verbs_queue, a_refused_completion_queue_halves_the_depth) {
  for (const int err : {EINVAL, ENOMEM}) {
    rig r(32768, 2048);
    r.d.cq_most = 500;
    r.d.cq_refusal = err;
    testing::internal::CaptureStderr();
    const verbs_queue q(r.port, r.path, 1, nullptr);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_PAIRS((r.d.cq_asked, (sizes{2048, 1024, 512, 256})), (r.d.made_cqe, 256), (r.d.made.max_send_wr, 256u),
                 (q.depth(), 256u));
    EXPECT_EQ(q.max_sge(), 30u) << "spans take no room there";
    test::expect_words(said, {"mlx5_0:1", "256 send requests of 30 spans instead of 2048 of 30"});
    EXPECT_EQ(said.find("(ulimit -l)") != std::string::npos, err == ENOMEM) << said;
  }
}

TEST(verbs_queue, the_least_depth_is_tried_whatever_was_asked_for) {
  rig completions(32768, 100);
  completions.d.cq_most = 32;
  const verbs_queue q(completions.port, completions.path, 1, nullptr);
  EXPECT_PAIRS((completions.d.cq_asked, (sizes{100, 50, 32})), (q.depth(), 32u));
  rig pairs(128, 100);  // 32 requests of 4 units
  const verbs_queue p(pairs.port, pairs.path, 1, nullptr);
  EXPECT_PAIRS((pairs.d.cq_asked, (sizes{100, 50, 32})), (pairs.d.made.max_send_wr, 32u), (p.depth(), 32u));
}

// Returns the sentence that refuses queue pair 5.
std::string refusal_of(rig& r) {
  return test::refusal(XIO_ERR_IO, [&] { verbs_queue(r.port, r.path, 5, nullptr); });
}

// The same of 100 requests where no completion queue can be made.
std::string refusal_of_completions(rig& r, int err) {
  r.d.cq_most = 31;
  r.d.cq_refusal = err;
  const std::string said = refusal_of(r);
  EXPECT_PAIRS((r.d.qps_asked, 0), (r.d.cqs, 0));
  return said;
}

TEST(verbs_queue, a_device_without_room_for_completions_is_named) {
  for (const int err : {EINVAL, ENOMEM}) {
    rig r(32768, 100);
    test::expect_words(
        refusal_of_completions(r, err),
        {"mlx5_0:1", "no completion queue of as few as 32 entries", "queue pair 5", std::strerror(err),
         err == ENOMEM ? "locked memory (ulimit -l)" : "does not take one of these values", "other users"});
    EXPECT_EQ(r.d.cq_asked, (sizes{100, 50, 32}));
  }
}

TEST(verbs_queue, what_is_no_matter_of_room_for_completions_fails_at_once) {
  for (const auto& [err, cure] : std::map<int, const char*>{{EPERM, "ask for access"},
                                                            {EACCES, "ask for access"},
                                                            {ENODEV, "the device is gone"},
                                                            {ENOSYS, "see the kernel's log"}}) {
    rig r(32768, 100);
    test::expect_words(refusal_of_completions(r, err),
                       {"mlx5_0:1", "no completion queue of 100 entries", "queue pair 5", std::strerror(err), cure});
    EXPECT_EQ(r.d.cq_asked, sizes{100});
  }
}

TEST(verbs_queue, what_is_no_matter_of_room_fails_at_once) {
  for (const int err : {EPERM, ENODEV}) {
    rig r(16, 256);
    r.d.refusal = err;
    test::expect_words(refusal_of(r), {"mlx5_0:1", "queue pair 5", "256 send", std::strerror(err),
                                       err == EPERM ? "ask for access" : "the device is gone"});
    EXPECT_EQ(r.d.refused, 4) << "as many as there are sizes of inline payload";
  }
}

TEST(verbs_queue, a_device_without_room_is_named) {
  rig r(16, 256);
  test::expect_words(refusal_of(r), {"mlx5_0:1", "queue pair 5", "32 send", "Invalid argument", "other users"});
}

}  // namespace
}  // namespace xio::proxy
