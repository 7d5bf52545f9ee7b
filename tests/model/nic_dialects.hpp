// SPDX-License-Identifier: MIT
// The families whose codecs post to the NIC model entry by entry, and one queue of each: what their tests have in
// common, and in what they differ.
#pragma once
#include "../gtest.hpp"
#include "gpu/gpu.hpp"
#include "model/nic/families.hpp"
#include "proxy/nic.hpp"
#include "proxy/shm_executor.hpp"
#include "xio/device/impl/bnxt.hpp"
#include "xio/device/impl/ernic.hpp"
#include "xio/device/impl/ionic.hpp"

namespace xio::test {

using namespace xio::dev;
namespace m = xio::proxy;

struct shape {
  u32 depth = 8;
  u64 ticket_start = 0;
  u32 first_psn = 0, mtu = 1024;
  bool v1 = false, queued = false;  // of ionic
  u32 timeout_ms = 10000;
};

inline std::ostream& operator<<(std::ostream& out, const shape& s) {
  return out << "depth " << s.depth << " from " << s.ticket_start << ", PSN " << s.first_psn << ", MTU " << s.mtu
             << (s.v1 ? ", v1" : "") << (s.queued ? ", completion queue" : "");
}

// How an op ends, and the code that waits report.
struct ending {
  m::outcome what;
  u32 vendor;
};

constexpr u32 k_injected = 22u << 8;  // rule::injected, which ernic's completions carry

// Numbers of PSNs depend on all entries before: starts near every wrap, of the MSN entry's and completion's 16 bits, of
// 32, of the 40 that share a word with the PSN, and of the PSN itself.
struct bnxt {
  static constexpr const char* k_name = "bnxt";
  using codec = bnxt_codec;
  static const m::family& family_of(const shape&) { return model::rdma::bnxt_family(); }
  static void set_view(ring_view&, const shape&) {}
  static std::vector<shape> shapes() {
    return {{8, 0, 0, 256},
            {4, 0, 0xfffffe, 256},
            {8, (u64{1} << 16) - 8, 0, 1024},
            {64, (u64{1} << 32) - 64, 0xffff00, 256},
            {4, (u64{1} << 40) - 4, 0xfffff0, 4096},
            {8, (u64{3} << 40) - 16, 0xfffffc, 512},
            {4, (u64{1} << 61) - 40, 7, 256}};
  }
  static std::vector<shape> failing() { return {{8, 8, 0x10, 256}}; }
  static constexpr u32 k_inline = 96;
  static constexpr u32 k_kept_free = 0;  // entries of an idle ring that cannot be had
  static constexpr u32 k_remote_access = 0x7;
  static constexpr ending k_endings[] = {{m::outcome::local_protection, 0x4}, {m::outcome::retry_exceeded, 0xa}};
  static constexpr u64 k_ops = 6000, k_each = 600;
};

// Starts near the wraps of the indices, of 16 and 32 bits, and near the end of tickets.
struct ernic {
  static constexpr const char* k_name = "ernic";
  using codec = ernic_codec;
  static const m::family& family_of(const shape&) { return model::rdma::ernic_family(); }
  static void set_view(ring_view&, const shape&) {}
  static std::vector<shape> shapes() {
    return {{}, {4, 4}, {8, (u64{1} << 16) - 8}, {64, (u64{1} << 32) - 64}, {4, (u64{1} << 61) - 40}};
  }
  static std::vector<shape> failing() { return {{8, 8, 0, 1024}}; }
  static constexpr u32 k_inline = 32, k_kept_free = 0;
  static constexpr u32 k_remote_access = 10u | 17u << 8;  // rule::remote_key
  static constexpr ending k_endings[] = {{m::outcome::local_protection, 4u | k_injected},
                                         {m::outcome::retry_exceeded, 12u | k_injected}};
  static constexpr u64 k_ops = 6000, k_each = 600;
};

// Starts near every wrap: of the index's 16 bits, of the message number's 24, and of 32. A family fixes interface and
// completions together; here each goes with each. An error names the entry's index, or the message's number
// where the peer refused.
struct ionic {
  static constexpr const char* k_name = "ionic";
  using codec = ionic_codec;
  static const m::family& family_of(const shape& s) {
    return s.queued ? model::rdma::ionic_v1_family() : model::rdma::ionic_family();
  }
  static void set_view(ring_view& v, const shape& s) { v.rdma.ionic.version = s.v1 ? 1 : 2; }
  static std::vector<shape> shapes() {
    std::vector<shape> all;
    for (const bool v1 : {false, true})
      for (const bool queued : {false, true}) {
        all.push_back({8, 0, 0, 1024, v1, queued});
        all.push_back({4, (u64{1} << 16) - 4, 0, 1024, v1, queued});
        all.push_back({64, (u64{1} << 24) - 64, 0, 1024, v1, queued});
        all.push_back({4, (u64{1} << 32) - 8, 0, 1024, v1, queued});
        all.push_back({16, (u64{5} << 40) - 32, 0, 1024, v1, queued});
      }
    return all;
  }
  static std::vector<shape> failing() {
    return {{8, (u64{1} << 24) - 8, 0, 1024}, {8, (u64{1} << 16) - 8, 0, 1024, true, true}};
  }
  static constexpr u32 k_inline = 32, k_kept_free = 1, k_remote_access = 9;
  static constexpr ending k_endings[] = {{m::outcome::local_protection, 3}, {m::outcome::retry_exceeded, 11}};
  static constexpr u64 k_ops = 6000, k_each = 600;
};

// One queue to a peer whose heap has an address of its own.
template <class Dialect>
class lane_rig {
 public:
  using codec = typename Dialect::codec;
  static constexpr std::size_t k_bytes = 1 << 20;
  static constexpr u64 k_remote_address = 0x7000'0000'0000;
  static constexpr u32 k_remote_key = 0xabc00;

  explicit lane_rig(const shape& s)
      : local_(k_bytes, gpu::place::shared),
        remote_(k_bytes, gpu::place::shared),
        nic_(fabric(), 5),
        family_(Dialect::family_of(s)),
        state_(sizeof(ring_state), gpu::place::device),
        marks_(s.depth * sizeof(u64), gpu::place::device),
        slots_(s.depth * std::size_t{family_.slot_bytes}, gpu::place::shared),
        completion_(family_.completion_bytes(m::completion_depth(family_, s.depth, 0)), gpu::place::shared),
        aux_(family_.aux_bytes(s.depth), gpu::place::shared),
        bells_(2 * 128, gpu::place::shared),
        machine_(1) {
    lkey_ = nic_.register_memory(local_.data(), k_bytes, m::local_read | m::local_write).lkey;
    lay_out(s);
    world_.ticks_per_ms = gpu::ticks_per_ms();
    world_.timeout_ticks = s.timeout_ms * world_.ticks_per_ms;
    machine_.add(&nic_);
  }
  ~lane_rig() { machine_.remove(&nic_); }

  unsigned char* local_memory() { return local_.as<unsigned char>(); }
  unsigned char* remote_memory() { return remote_.as<unsigned char>(); }
  const ring_view& ring() const { return view_; }
  const world_view& world() const { return world_; }
  m::nic& nic() { return nic_; }
  ring_state& state() { return *state_.as<ring_state>(); }

  rdma::work op(rdma::verb what, rdma::payload from, std::size_t local, std::size_t remote, u32 bytes) {
    rdma::work w{};
    w.what = what;
    w.from = from;
    w.bytes = bytes;
    w.remote = k_remote_address + remote;
    w.rkey = k_remote_key;
    w.lkey = lkey_;
    w.local = reinterpret_cast<u64>(local_memory() + local);
    return w;
  }
  xio_status_t quiet() { return ring_quiet<codec>(view_, world_); }

 private:
  std::unique_ptr<m::fabric> fabric() {
    auto f = std::make_unique<m::shm_fabric>(gpu::payload(), k_bytes, 5);
    f->adopt(
        1, k_remote_key,
        {k_remote_address, k_bytes, remote_.as<unsigned char>(), m::remote_read | m::remote_write | m::remote_atomic});
    return f;
  }

  void lay_out(const shape& s) {
    view_.state = state_.as<ring_state>();
    view_.marks = marks_.as<u64>();
    view_.slots = slots_.as<unsigned char>();
    view_.depth = s.depth;
    view_.kind = family_.kind;
    rdma_ring& r = view_.rdma;
    r.depth_log2 = lowest_bit(s.depth);
    r.cq_depth = m::completion_depth(family_, s.depth, 0);
    r.cq_depth_log2 = r.cq_depth == 0 ? 0 : lowest_bit(r.cq_depth);
    r.doorbell = bells_.as<u64>();
    r.completions = completion_.as<unsigned char>();
    m::queue_parts parts{aux_.as<unsigned char>(), nullptr, bells_.as<u64>() + 16, s.mtu, 0};
    if (family_.registered_slots)
      parts.slots_lkey = nic_.register_memory(slots_.data(), slots_.size(), m::local_read).lkey;
    family_.set_fields(r, parts);
    ring_state& state = this->state();
    state.issued = state.published = state.completed = s.ticket_start;
    state.credits = s.depth;
    const m::queue_plan plan{s.ticket_start, k_bytes, s.mtu, s.first_psn};
    family_.prepare(view_, {slots_.as<unsigned char>(), aux_.as<unsigned char>(), completion_.as<unsigned char>()},
                    state, plan);
    Dialect::set_view(view_, s);
    view_.id = nic_.create_queue([&](u32 number) { return family_.decode(view_, plan, number); });
    nic_.connect(view_.id, 1, {}, 0);
  }

  gpu::buffer local_, remote_;
  m::nic nic_;
  const m::family& family_;
  gpu::buffer state_, marks_, slots_, completion_, aux_, bells_;
  ring_view view_{};
  world_view world_{};
  u32 lkey_ = 0;
  progress::machine machine_;
};

}  // namespace xio::test
