// SPDX-License-Identifier: MIT
#include "transport/rdma/direct/self_write.hpp"

#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/run_clock.hpp"
#include "transport/rdma/vendor_text.hpp"
#include "xio/device/impl/bnxt.hpp"
#include "xio/device/impl/ionic.hpp"
#include "xio/device/impl/mlx5.hpp"

namespace xio::rdma {

namespace {

constexpr std::chrono::microseconds k_pause{50};
constexpr std::uint32_t k_depth = 64;

// As kernels do it (ring.hpp), by one thread that is alone.
template <class Codec>
std::string carry_out(const dev::ring_view& v, const dev::rdma::work& w, std::chrono::milliseconds patience) {
  dev::ring_state& s = *v.state;
  std::uint64_t serial = 0;
  const std::uint32_t slots = Codec::slots(w);
  const std::uint64_t ticket = dev::ring_take_tickets<Codec>(v, slots, Codec::packets(v, w), &serial);
  Codec::encode(v, ticket, serial, true, w);
  s.published = ticket + slots;
  Codec::announce(v, ticket, ticket + slots);
  const auto until = run_clock::now() + patience;
  while (Codec::drain(v, s.completed) < ticket + slots) {
    if (s.failed != 0) return fmt::format("a write to itself failed: {}", vendor_text(v.kind, s.vendor));
    if (run_clock::now() > until)
      return fmt::format("a write to itself has not completed within {} ms", patience.count());
    std::this_thread::sleep_for(k_pause);
  }
  return "";
}

std::string carry_out(const dev::ring_view& v, const dev::rdma::work& w, std::chrono::milliseconds patience) {
  switch (v.kind) {
    case dev::ring_kind::mlx5: return carry_out<dev::mlx5_codec>(v, w, patience);
    case dev::ring_kind::bnxt: return carry_out<dev::bnxt_codec>(v, w, patience);
    case dev::ring_kind::ionic: return carry_out<dev::ionic_codec>(v, w, patience);
    default: return "the host does not write such entries";
  }
}

}  // namespace

std::string write_to_itself(direct_nic& nic, const self_writer& how, const probed_memory& memory,
                            std::chrono::milliseconds patience) {
  try {
    const std::uint32_t depth = nic.depth_of(k_depth);
    const auto queue = nic.make_queue(depth, how.format->most_cq_depth == 0 ? 0 : 2 * depth, false);
    std::vector<std::uint64_t> marks(depth);
    dev::ring_state state{};
    dev::ring_view v{};
    v.kind = how.format->kind;
    v.state = &state;
    v.marks = marks.data();
    v.chunk = k_probe_bytes;
    queue->fill(v, state);
    queue->take_host_doorbells(v);
    queue->connect(queue->identity(), how.me, how.path, v);
    dev::rdma::work w{};
    w.what = dev::rdma::verb::write;
    w.from = dev::rdma::payload::memory;
    w.bytes = k_probe_bytes / 2;
    w.local = reinterpret_cast<std::uint64_t>(memory.words);
    w.remote = w.local + w.bytes;
    w.lkey = memory.keys.lkey;
    w.rkey = memory.keys.rkey;
    const std::string why = carry_out(v, w, patience);
    queue->stop();
    return why;
  } catch (const error& e) {
    return e.what();
  }
}

}  // namespace xio::rdma
