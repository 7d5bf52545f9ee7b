// SPDX-License-Identifier: MIT
#include "transport/rdma/ionic/nic.hpp"

#include <atomic>
#include <optional>
#include <random>

#include "base/error.hpp"
#include "transport/rdma/direct/register_page.hpp"
#include "transport/rdma/ionic/maker.hpp"
#include "transport/rdma/uverbs/kernel_nic.hpp"
#include "transport/rdma/uverbs/trial.hpp"
#include "xio/device/impl/ionic.hpp"

namespace xio::rdma {

namespace {

namespace w = wire::ionic;

// A completion queue has two entries for each of the send queue, and doorbells have 16 bits for an index of either.
constexpr std::uint32_t k_most_cq_depth = 32768, k_most_depth = k_most_cq_depth / 2;
// Colours and indices begin at 0, and completions count messages in 16 bits that matter.
constexpr std::uint64_t k_count_from = 1u << 16;
// The NIC looks at the place of a doorbell modulo this alone, so a page has a copy of each for several queue pairs
// (rocSHMEM, queue_pair_ionic.cpp, ring_doorbell_single: one for each lane of a wave).
constexpr std::size_t k_doorbell_copy = 64, k_doorbell_page = 4096;
using ionic::k_receive_bytes;
using ionic::log2_of;
using objects = queue_objects;

// Where each part of a queue's memory begins. Every queue pair has a receive queue, here of one page: only writes with
// immediate use it, and a completion queue of another page. The driver takes queues in pages of the kernel's size.
struct layout {
  std::size_t page, receives, receive_completions, completions, end;
  layout(std::size_t page_bytes, std::uint32_t depth, std::uint32_t cq_depth)
      : page(page_bytes),
        receives(whole_pages(std::size_t{depth} * w::k_wqe_bytes)),
        receive_completions(receives + page),
        completions(receive_completions + page),
        end(completions + whole_pages(std::size_t{cq_depth} * w::k_cqe_bytes)) {}

 private:
  std::size_t whole_pages(std::size_t bytes) const { return (bytes + page - 1) / page * page; }
};

struct described {
  described(unsigned char* base, const layout& l, std::uint32_t depth, std::uint32_t cq_depth)
      : sends(nullptr, base, std::size_t{depth} * w::k_wqe_bytes),
        receives(nullptr, base + l.receives, l.page),
        receive_completions(nullptr, base + l.receive_completions, l.page),
        completions(nullptr, base + l.completions, std::size_t{cq_depth} * w::k_cqe_bytes) {}
  const queue_memory sends, receives, receive_completions, completions;
};

// --- A NIC -------------------------------------------------------------------------------------------

// Entries that fill a page: what the vendor's library makes at least.
std::uint32_t least_depth(const ionic::nic_facts& f) { return static_cast<std::uint32_t>(f.page / w::k_wqe_bytes); }

struct ionic_port {
  ionic_port(const proxy::verbs_port& p, const direct_hooks& h)
      : port(p),
        hooks(h),
        maker(p.by_library ? ionic::make_by_library(p.context.get(), p.domain.get())
                           : ionic::make_by_kernel(p.identity.device, p.kernel_file)),
        facts(maker->facts()),
        doorbells(p.identity.device, maker->own_page(), facts.page, hooks) {}
  // Where a queue's doorbell is in the page, and its copies behind that.
  std::size_t doorbell_of(std::uint8_t type, std::size_t copy = 0) const {
    return facts.doorbell_offset + std::size_t{type} * sizeof(std::uint64_t) + copy * k_doorbell_copy;
  }
  // Of the doorbells: queue pairs share them when there are more than these.
  std::size_t next_copy() {
    if (std::max(facts.sq_type, facts.cq_type) >= k_doorbell_copy / sizeof(std::uint64_t)) return 0;
    return copies_++ % ((k_doorbell_page - facts.doorbell_offset % k_doorbell_page) / k_doorbell_copy);
  }
  const proxy::verbs_port port;
  const direct_hooks hooks;
  const std::unique_ptr<ionic::maker> maker;
  const ionic::nic_facts facts;
  const register_page doorbells;  // of all queues

 private:
  std::atomic<std::uint32_t> copies_ = 0;
};

class ionic_send_queue final : public direct_queue {
 public:
  ionic_send_queue(std::shared_ptr<ionic_port> port, std::uint32_t depth, std::uint32_t cq_depth, bool receives)
      : port_(std::move(port)),
        depth_(depth),
        cq_depth_(cq_depth),
        copy_(port_->next_copy()),
        parts_(port_->facts.page, depth, cq_depth),
        mine_(port_->port.identity),
        memory_(parts_.end, port_->hooks.rings, parts_.page, gpu::purpose::completions),
        made_(port_->maker->begin()) {
    auto* base = memory_.as<unsigned char>();
    // The first lap's entries and completions have the colour that zero has not.
    const std::vector<unsigned char> zero(parts_.end, 0);
    gpu::copy(base, zero.data(), zero.size());
    const described memory(base, parts_, depth, cq_depth);
    check("completion queue", made_->make_cq(objects::sends, cq_depth, memory.completions));
    if (receives)
      check("completion queue of receives",
            made_->make_cq(objects::receives, static_cast<std::uint32_t>(parts_.page / w::k_cqe_bytes),
                           memory.receive_completions));
    check("queue pair", made_->make_qp(depth, memory.sends, memory.receives));
    mine_.qpn = made_->qp_number;
    mine_.psn = std::random_device()() & w::k_msn_mask;
    if (receives) prepare_receives(base);
  }

  const proxy::verbs_address& identity() const override { return mine_; }
  void connect(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path, dev::ring_view&) override {
    const auto modify = [this](const uverbs::modify_qp& m) { return made_->modify(m); };
    uverbs::connect({modify, &port_->port}, mine_, remote, pe, path);
  }
  bool poll_receives(immediate_target& to) override { return receives_ && receives_->poll(to); }
  void stop() noexcept override { made_->end_qp(); }
  void take_host_doorbells(dev::ring_view& v) const override {
    v.rdma.doorbell = host_doorbell(port_->facts.sq_type, copy_);
    v.rdma.ionic.cq_doorbell = host_doorbell(port_->facts.cq_type, copy_);
  }
  void fill(dev::ring_view& v, dev::ring_state& state) const override {
    const ionic::nic_facts& facts = port_->facts;
    auto* base = memory_.as<unsigned char>();
    v.slots = base;
    v.depth = depth_;
    v.rdma.depth_log2 = log2_of(depth_);
    v.id = mine_.qpn;
    v.rdma.ionic.version = facts.version == 1 ? 1 : 2;
    v.rdma.completions = base + parts_.completions;
    v.rdma.cq_depth = cq_depth_;
    v.rdma.cq_depth_log2 = log2_of(cq_depth_);
    v.rdma.ionic.cq_id = made_->cq_number[objects::sends];
    v.rdma.doorbell = port_->doorbells.doorbell(port_->doorbell_of(facts.sq_type, copy_));
    v.rdma.ionic.cq_doorbell = port_->doorbells.doorbell(port_->doorbell_of(facts.cq_type, copy_));
    state.credits = depth_ - 1;  // a full ring would look empty
  }

 private:
  std::uint64_t* host_doorbell(std::uint8_t type, std::size_t copy) const {
    return port_->doorbells.host_doorbell(port_->doorbell_of(type, copy));
  }
  void prepare_receives(unsigned char* base) {
    receives_.emplace(ionic::receives(
        {base + parts_.receives, base + parts_.receive_completions, log2_of(parts_.page / k_receive_bytes),
         log2_of(parts_.page / w::k_cqe_bytes), mine_.qpn, made_->cq_number[objects::receives],
         host_doorbell(port_->facts.rq_type, 0), host_doorbell(port_->facts.cq_type, 0)}));
  }
  void check(const char* what, int err) const { uverbs::check_made(mine_, what, depth_, err); }

  const std::shared_ptr<ionic_port> port_;
  const std::uint32_t depth_, cq_depth_;
  const std::size_t copy_;  // of the doorbells
  const layout parts_;
  proxy::verbs_address mine_;
  gpu::buffer memory_;  // by parts_
  const std::unique_ptr<queue_objects> made_;
  std::optional<receive_queue<ionic::receives>> receives_;
};

std::unique_ptr<direct_nic> open(const proxy::verbs_port& port, const proxy::verbs_path& path,
                                 const direct_hooks& hooks) {
  const auto made = std::make_shared<ionic_port>(port, hooks);
  return uverbs::open_nic<ionic_send_queue>(made, made->maker->owner(), path, least_depth(made->facts), k_most_depth);
}

bool drives(const proxy::verbs_port& port) { return port.vendor == proxy::nic_vendor::pensando; }

// The smallest queue, made and ended. Empty, or what failed.
std::string try_queue(const std::string& device, ionic::maker& maker) {
  const std::uint32_t depth = least_depth(maker.facts());
  const layout parts(maker.facts().page, depth, 2 * depth);
  uverbs::trial t(device, parts.end, maker.owner() != nullptr ? ionic::lacking : nullptr);
  if (!t.why().empty()) return t.why();
  const described memory(t.memory(), parts, depth, 2 * depth);
  const auto made = maker.begin();
  t.step("completion queue", "completion queues by system calls (UVERBS_METHOD_CQ_CREATE)",
         [&] { return made->make_cq(objects::sends, 2 * depth, memory.completions); });
  t.step("queue pair", "queue pairs by system calls (UVERBS_METHOD_QP_CREATE)",
         [&] { return made->make_qp(depth, memory.sends, memory.receives); });
  return t.why();
}

}  // namespace

std::string why_no_ionic_queues(const std::string& device, const std::string& file) {
  return sentence_from([&] { return try_queue(device, *ionic::make_by_kernel(device, file)); });
}

std::string why_no_ionic_library(ibv_context* context, ibv_pd* domain, std::string* path) {
  return sentence_from(
      [&] { return try_queue(ibv_get_device_name(context->device), *ionic::make_by_library(context, domain, path)); });
}

const direct_provider& ionic_provider() {
  static constexpr direct_provider row{
      {"ionic", dev::ring_kind::ionic, w::k_inline_bytes, w::k_inline_bytes, k_most_cq_depth, k_count_from, true},
      "the driver of ionic NICs pins rings by address, and takes no dma-buf for them",
      drives,
      open};
  return row;
}

}  // namespace xio::rdma
