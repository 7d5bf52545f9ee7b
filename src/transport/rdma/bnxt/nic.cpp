// SPDX-License-Identifier: MIT
#include "transport/rdma/bnxt/nic.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <random>

#include "base/error.hpp"
#include "transport/rdma/bnxt/maker.hpp"
#include "transport/rdma/bnxt/receives.hpp"
#include "transport/rdma/direct/register_page.hpp"
#include "transport/rdma/uverbs/kernel_nic.hpp"
#include "transport/rdma/uverbs/trial.hpp"
#include "xio/device/impl/bnxt.hpp"

namespace xio::rdma {

namespace {

namespace w = wire::bnxt;

using bnxt::k_page;
using objects = queue_objects;
// The MSN table lies right behind the ring, and ends with the memory: firmware and libraries compute its place from
// either side, and here both find the same. For that ring and table must be whole pages.
constexpr std::uint32_t k_least_depth = k_page / sizeof(std::uint64_t);
// MSN entries have 16 bits for a slot.
constexpr std::uint32_t k_most_slots = 65536;  // drivers/infiniband/hw/bnxt_re/qplib_sp.h, BNXT_RE_MAX_SQ_SLOTS
constexpr std::uint32_t k_most_depth = k_most_slots / w::k_wqe_slots;
// Doorbells carry an epoch and the MSN table its index from 0, so tickets start at a multiple of all.
constexpr std::uint64_t k_count_from = 1u << 17;

std::size_t whole_pages(std::size_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

// Every queue pair has a receive queue. Only writes with immediate use it, and a completion queue of its own.
constexpr std::size_t k_receive_bytes =
    std::size_t{bnxt::receives::k_entries} * bnxt::receives::k_entry_slots * w::k_slot_bytes;
static_assert(k_receive_bytes % k_page == 0 && bnxt::receives::k_completions * w::k_cqe_bytes == k_page);

// Where each part of a queue's memory begins.
struct layout {
  std::size_t table, receives, receive_completions, completions, end;
  layout(std::uint32_t depth, std::uint32_t table_log2, std::uint32_t cq_depth)
      : table(std::size_t{depth} * w::k_wqe_bytes),
        receives(table + (depth * sizeof(std::uint64_t) << table_log2)),
        receive_completions(receives + k_receive_bytes),
        completions(receive_completions + k_page),
        end(completions + whole_pages(std::size_t{cq_depth} * w::k_cqe_bytes)) {}
};
// The parts, as they are given to a maker.
struct described {
  described(const proxy::memory_exporter& exporter, unsigned char* base, const layout& l)
      : sends(exporter, base, l.receives),
        receives(exporter, base + l.receives, k_receive_bytes),
        receive_completions(exporter, base + l.receive_completions, k_page),
        completions(exporter, base + l.completions, l.end - l.completions) {}
  const queue_memory sends, receives, receive_completions, completions;
};

// --- A NIC -------------------------------------------------------------------------------------------

struct bnxt_port {
  bnxt_port(const proxy::verbs_port& p, const direct_hooks& h)
      : port(p),
        hooks(h),
        maker(p.by_library ? bnxt::make_by_library(p.context.get(), p.domain.get())
                           : bnxt::make_by_kernel(p.identity.device, p.kernel_file)),
        completions(p.identity.device, maker->own_page(), k_page, hooks) {}
  const proxy::verbs_port port;
  const direct_hooks hooks;
  const std::unique_ptr<bnxt::maker> maker;
  const register_page completions;  // where all completion queues of the context are announced
};

class bnxt_send_queue final : public direct_queue {
 public:
  bnxt_send_queue(std::shared_ptr<bnxt_port> port, std::uint32_t depth, std::uint32_t cq_depth, bool receives)
      : port_(std::move(port)),
        depth_(depth),
        cq_depth_(cq_depth),
        parts_(depth, port_->maker->table_log2(), cq_depth),
        mine_(port_->port.identity),
        memory_(parts_.end, port_->hooks.rings, k_page, gpu::purpose::completions),
        made_(port_->maker->begin()) {
    auto* base = memory_.as<unsigned char>();
    // The first lap's completions have the phase that zero has not.
    const std::vector<unsigned char> zero(parts_.end, 0);
    gpu::copy(base, zero.data(), zero.size());
    check("doorbell page", made_->make_page());
    const described memory(port_->hooks.export_memory, base, parts_);
    check("completion queue", made_->make_cq(objects::sends, cq_depth, memory.completions));
    if (receives)
      check("completion queue of receives",
            made_->make_cq(objects::receives, bnxt::receives::k_completions, memory.receive_completions));
    check("queue pair", made_->make_qp(depth, memory.sends, memory.receives));
    page_ = std::make_unique<register_page>(mine_.device, made_->page, k_page, port_->hooks);
    mine_.qpn = made_->qp_number;
    mine_.psn = std::random_device()() & w::k_psn_mask;
    if (receives)
      receives_.emplace(bnxt::receives({base + parts_.receives, base + parts_.receive_completions, mine_.qpn,
                                        made_->cq_number[objects::receives], page_->host_doorbell(0),
                                        port_->completions.host_doorbell(0)}));
  }

  const proxy::verbs_address& identity() const override { return mine_; }
  void connect(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path, dev::ring_view& v) override {
    const auto modify = [this](const uverbs::modify_qp& m) { return made_->modify(m); };
    uverbs::connect({modify, &port_->port}, mine_, remote, pe, path);
    v.rdma.bnxt.path_mtu = static_cast<std::uint16_t>(proxy::mtu_bytes(agree_mtu(mine_, remote, pe, path.mtu)));
  }
  bool poll_receives(immediate_target& to) override { return receives_ && receives_->poll(to); }
  void stop() noexcept override { made_->end_qp(); }
  void take_host_doorbells(dev::ring_view& v) const override {
    v.rdma.doorbell = page_->host_doorbell(0);
    v.rdma.bnxt.cq_doorbell = port_->completions.host_doorbell(0);
  }
  void fill(dev::ring_view& v, dev::ring_state& state) const override {
    auto* base = memory_.as<unsigned char>();
    v.slots = base;
    v.depth = depth_;
    v.rdma.depth_log2 = static_cast<std::uint32_t>(std::countr_zero(depth_));
    v.id = mine_.qpn;
    v.rdma.bnxt.unit = w::k_wqe_slots;
    v.rdma.bnxt.table_log2 = static_cast<std::uint8_t>(port_->maker->table_log2());
    v.rdma.bnxt.msn_table = reinterpret_cast<std::uint64_t*>(base + parts_.table);
    v.rdma.completions = base + parts_.completions;
    v.rdma.cq_depth = cq_depth_;
    v.rdma.cq_depth_log2 = static_cast<std::uint32_t>(std::countr_zero(cq_depth_));
    v.rdma.bnxt.cq_id = made_->cq_number[objects::sends];
    v.rdma.doorbell = page_->doorbell(0);
    v.rdma.bnxt.cq_doorbell = port_->completions.doorbell(0);
    v.rdma.bnxt.path_mtu = static_cast<std::uint16_t>(proxy::mtu_bytes(mine_.mtu));
    state.credits = depth_;
    // Ticket and PSN in one word; see ring_take_tickets.
    constexpr unsigned k_ticket_bits = 40;
    state.serial = ((std::uint64_t{mine_.psn} + (state.issued >> k_ticket_bits)) << k_ticket_bits) |
                   (state.issued & ((std::uint64_t{1} << k_ticket_bits) - 1));
  }

 private:
  void check(const char* what, int err) const { uverbs::check_made(mine_, what, depth_, err); }

  const std::shared_ptr<bnxt_port> port_;
  const std::uint32_t depth_, cq_depth_;
  const layout parts_;
  proxy::verbs_address mine_;
  gpu::buffer memory_;  // by parts_
  const std::unique_ptr<queue_objects> made_;
  std::unique_ptr<register_page> page_;
  std::optional<receive_queue<bnxt::receives>> receives_;
};

std::unique_ptr<direct_nic> open(const proxy::verbs_port& port, const proxy::verbs_path& path,
                                 const direct_hooks& hooks) {
  const auto made = std::make_shared<bnxt_port>(port, hooks);
  return uverbs::open_nic<bnxt_send_queue>(made, made->maker->owner(), path, k_least_depth, k_most_depth);
}

bool drives(const proxy::verbs_port& port) { return port.vendor == proxy::nic_vendor::broadcom; }

// The smallest queue, made and ended. Empty, or what failed.
std::string try_queue(const std::string& device, bnxt::maker& maker) {
  const layout parts(k_least_depth, maker.table_log2(), 2 * k_least_depth);
  uverbs::trial t(device, parts.end, maker.owner() != nullptr ? bnxt::too_old : nullptr);
  if (!t.why().empty()) return t.why();
  const described memory(nullptr, t.memory(), parts);
  const auto made = maker.begin();
  t.step("doorbell page", "doorbell pages for users (BNXT_RE_METHOD_DBR_ALLOC)", [&] { return made->make_page(); });
  t.step("completion queue", "completion queues in given memory (UVERBS_ATTR_CREATE_CQ_BUF_UMEM)",
         [&] { return made->make_cq(objects::sends, 2 * k_least_depth, memory.completions); });
  t.step("queue pair", "queue pairs of given sizes (BNXT_RE_QP_REQ_MASK_FIXED_QUE_ATTR)",
         [&] { return made->make_qp(k_least_depth, memory.sends, memory.receives); });
  return t.why();
}

}  // namespace

std::string why_no_bnxt_queues(const std::string& device, const std::string& file) {
  return sentence_from([&] { return try_queue(device, *bnxt::make_by_kernel(device, file)); });
}

std::string why_no_bnxt_library(ibv_context* context, ibv_pd* domain, std::string* path) {
  return sentence_from(
      [&] { return try_queue(ibv_get_device_name(context->device), *bnxt::make_by_library(context, domain, path)); });
}

const direct_provider& bnxt_provider() {
  static constexpr direct_provider row{
      {"bnxt", dev::ring_kind::bnxt, w::k_inline_bytes, w::k_inline_bytes, 65536, k_count_from, true},
      nullptr,
      drives,
      open};
  return row;
}

}  // namespace xio::rdma
