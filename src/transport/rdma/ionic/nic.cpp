// SPDX-License-Identifier: MIT
#include "transport/rdma/ionic/nic.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <optional>
#include <random>

#include "base/error.hpp"
#include "transport/rdma/direct/register_page.hpp"
#include "transport/rdma/ionic/abi.hpp"
#include "transport/rdma/ionic/receives.hpp"
#include "transport/rdma/uverbs/domain.hpp"
#include "transport/rdma/uverbs/kernel_nic.hpp"
#include "transport/rdma/uverbs/trial.hpp"
#include "xio/device/impl/ionic.hpp"
#include "xio/wire/ionic.hpp"

namespace xio::rdma {

namespace {

namespace w = wire::ionic;

// A completion queue has two entries for each of the send queue, and doorbells have 16 bits for an index of either.
constexpr std::uint32_t k_most_cq_depth = 32768, k_most_depth = k_most_cq_depth / 2;
// Colours and indices begin at 0, and completions count messages in 16 bits that matter.
constexpr std::uint64_t k_count_from = 1u << 16;
// Every queue pair has a receive queue, here of one page. Only writes with immediate use it, and a completion queue of
// another page.
constexpr std::uint32_t k_receive_bytes = ionic::receives::k_entry_bytes;
// The NIC looks at the place of a doorbell modulo this alone, so a page has a copy of each for several queue pairs
// (rocSHMEM, queue_pair_ionic.cpp, ring_doorbell_single: one for each lane of a wave).
constexpr std::size_t k_doorbell_copy = 64, k_doorbell_page = 4096;
constexpr std::uint32_t k_spans = (w::k_wqe_bytes - w::k_payload_at) / 16;

// Where each part of a queue's memory begins. The driver takes queues in pages of the kernel's size.
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

std::uint32_t log2_of(std::size_t n) { return static_cast<std::uint32_t>(std::countr_zero(n)); }

ionic::queue_description describe(const unsigned char* at, std::size_t bytes, std::size_t entry_bytes) {
  const std::size_t entries = bytes / entry_bytes;
  return {reinterpret_cast<std::uint64_t>(at), static_cast<std::uint32_t>(bytes),
          static_cast<std::uint16_t>(entries - 1), static_cast<std::uint8_t>(log2_of(entries)),
          static_cast<std::uint8_t>(log2_of(entry_bytes))};
}

// A context with what the driver says of the NIC.
class ionic_context {
 public:
  ionic_context(const std::string& device, const std::string& file) : owner_(open(device, file)) {}
  const uverbs::domain& owner() const { return *owner_; }
  uverbs::domain& owner() { return *owner_; }
  const ionic::context_response& response() const { return response_; }
  std::size_t page() const { return std::size_t{1} << response_.page_shift; }
  // Where a queue's doorbell is in the page, and its copies behind that.
  std::size_t doorbell_of(std::uint8_t type, std::size_t copy = 0) const {
    return response_.doorbell_offset + std::size_t{type} * sizeof(std::uint64_t) + copy * k_doorbell_copy;
  }
  // Entries that fill a page: what the vendor's library makes at least.
  std::uint32_t least_depth() const { return static_cast<std::uint32_t>(page() / w::k_wqe_bytes); }
  // A pipeline of the NIC, as a mask: queue pairs take turns.
  std::uint8_t take_pipeline() { return static_cast<std::uint8_t>(1u << (pairs_++ % response_.pipelines)); }
  // Of the doorbells: queue pairs share them when there are more than these.
  std::size_t next_copy() {
    const std::size_t last = std::max(response_.sq_type, response_.cq_type);
    if (last >= k_doorbell_copy / sizeof(std::uint64_t)) return 0;
    return copies_++ % ((k_doorbell_page - response_.doorbell_offset % k_doorbell_page) / k_doorbell_copy);
  }
  // Empty, or what of the driver's words cannot be.
  std::string lacks() const {
    if (response_.version == 0 || response_.pipelines == 0) return "RDMA on this NIC's firmware";
    if (response_.pipelines > ionic::k_most_pipelines || response_.page_shift < 12 || response_.page_shift > 16 ||
        doorbell_of(std::max({response_.sq_type, response_.rq_type, response_.cq_type})) >= page())
      return "queues that this XIO knows";
    return "";
  }

 private:
  std::unique_ptr<uverbs::domain> open(const std::string& device, const std::string& file) {
    const ionic::context_request wanted{};
    return std::make_unique<uverbs::domain>(device, file, uverbs::driver_ionic,
                                            uverbs::driver_data{&wanted, sizeof wanted, &response_, sizeof response_},
                                            uverbs::driver_data{});
  }

  ionic::context_response response_{};
  std::unique_ptr<uverbs::domain> owner_;
  std::atomic<std::uint32_t> pairs_ = 0, copies_ = 0;
};

// --- A queue pair's objects --------------------------------------------------------------------------

// Handles and numbers; the queue pair goes first.
struct objects {
  const uverbs::domain* owner;
  struct completion_queue {
    std::uint32_t handle = 0, number = 0;
  };
  completion_queue cq, receive_cq;  // the second is the first where nothing is received
  std::uint32_t qp = 0, qp_number = 0;

  explicit objects(const uverbs::domain& o) : owner(&o) {}
  ~objects() {
    uverbs::destroy_qp(*owner, &qp);
    if (receive_cq.handle != cq.handle) uverbs::destroy_cq(*owner, &receive_cq.handle);
    uverbs::destroy_cq(*owner, &cq.handle);
  }
  objects(const objects&) = delete;
  objects& operator=(const objects&) = delete;

  // Each returns 0 or the errno.
  int make_cq(std::uint8_t pipeline, const ionic::queue_description& memory, completion_queue* to) {
    const auto place = log2_of(pipeline);
    ionic::cq_request wanted{};
    wanted.queues[place] = memory;
    wanted.pipelines = pipeline;
    ionic::cq_response made{};
    const std::uint32_t entries = memory.mask - ionic::k_cq_spare;
    std::uint32_t given = 0;
    uverbs::call c(uverbs::obj_cq, uverbs::cq::create);
    c.make(uverbs::cq::handle).in(uverbs::cq::entries, entries).in(uverbs::cq::user_handle, std::uint64_t{0});
    c.in(uverbs::cq::vector, std::uint32_t{0}).out(uverbs::cq::entries_made, &given);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner->run(c);
    if (err != 0) return err;
    *to = {c.made(uverbs::cq::handle), made.numbers[place]};
    return made.pipelines == pipeline ? 0 : EPROTO;
  }
  int make_qp(std::uint8_t pipeline, const ionic::queue_description& sends, const ionic::queue_description& receives) {
    ionic::qp_request wanted{};
    wanted.sends = sends;
    wanted.receives = receives;
    wanted.pipelines = pipeline;
    ionic::qp_response made{};
    const uverbs::queue_capacity capacity{sends.mask, receives.mask, k_spans, 1, w::k_inline_bytes};
    uverbs::queue_capacity given{};
    std::uint32_t number = 0;
    uverbs::call c(uverbs::obj_qp, uverbs::qp::create);
    c.make(uverbs::qp::handle).use(uverbs::qp::pd, owner->pd()).use(uverbs::qp::send_cq, cq.handle);
    c.use(uverbs::qp::receive_cq, receive_cq.handle)
        .in(uverbs::qp::user_handle, std::uint64_t{0})
        .in(uverbs::qp::capacity, capacity);
    c.choose(uverbs::qp::type, uverbs::qp::k_reliable).out(uverbs::qp::capacity_made, &given);
    c.out(uverbs::qp::number, &number);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner->run(c);
    if (err != 0) return err;
    qp = c.made(uverbs::qp::handle);
    qp_number = made.number;
    return made.pipeline == log2_of(pipeline) ? 0 : EPROTO;
  }
};

// --- A NIC -------------------------------------------------------------------------------------------

struct ionic_port {
  ionic_port(const proxy::verbs_port& p, const direct_hooks& h)
      : port(p),
        hooks(h),
        context(p.identity.device, p.kernel_file),
        doorbells(p.identity.device, context.owner().map_page(0, context.page()), context.page(), hooks) {}
  const proxy::verbs_port port;
  const direct_hooks hooks;
  ionic_context context;
  const register_page doorbells;  // of all queues
};

class ionic_send_queue final : public direct_queue {
 public:
  ionic_send_queue(std::shared_ptr<ionic_port> port, std::uint32_t depth, std::uint32_t cq_depth, bool receives)
      : port_(std::move(port)),
        depth_(depth),
        cq_depth_(cq_depth),
        copy_(port_->context.next_copy()),
        parts_(port_->context.page(), depth, cq_depth),
        mine_(port_->port.identity),
        memory_(parts_.end, port_->hooks.rings, parts_.page, gpu::purpose::completions),
        made_(port_->context.owner()) {
    auto* base = memory_.as<unsigned char>();
    // The first lap's entries and completions have the colour that zero has not.
    const std::vector<unsigned char> zero(parts_.end, 0);
    gpu::copy(base, zero.data(), zero.size());
    const std::uint8_t pipeline = port_->context.take_pipeline();
    const auto completions =
        describe(base + parts_.completions, std::size_t{cq_depth} * w::k_cqe_bytes, w::k_cqe_bytes);
    check("completion queue", made_.make_cq(pipeline, completions, &made_.cq));
    made_.receive_cq = made_.cq;
    if (receives)
      check("completion queue of receives",
            made_.make_cq(pipeline, describe(base + parts_.receive_completions, parts_.page, w::k_cqe_bytes),
                          &made_.receive_cq));
    check("queue pair", made_.make_qp(pipeline, describe(base, std::size_t{depth} * w::k_wqe_bytes, w::k_wqe_bytes),
                                      describe(base + parts_.receives, parts_.page, k_receive_bytes)));
    mine_.qpn = made_.qp_number;
    mine_.psn = std::random_device()() & w::k_msn_mask;
    if (receives) prepare_receives(base);
  }

  const proxy::verbs_address& identity() const override { return mine_; }
  void connect(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path, dev::ring_view&) override {
    const auto modify = [this](const uverbs::modify_qp& m) { return port_->context.owner().modify(made_.qp, m); };
    uverbs::connect({modify, &port_->port}, mine_, remote, pe, path);
  }
  bool poll_receives(immediate_target& to) override { return receives_ && receives_->poll(to); }
  void stop() noexcept override { uverbs::destroy_qp(port_->context.owner(), &made_.qp); }
  void take_host_doorbells(dev::ring_view& v) const override {
    const ionic_context& context = port_->context;
    const auto word = [&](std::uint8_t type) {
      return port_->doorbells.host_doorbell(context.doorbell_of(type, copy_));
    };
    v.rdma.doorbell = word(context.response().sq_type);
    v.rdma.ionic.cq_doorbell = word(context.response().cq_type);
  }
  void fill(dev::ring_view& v, dev::ring_state& state) const override {
    const ionic_context& context = port_->context;
    auto* base = memory_.as<unsigned char>();
    v.slots = base;
    v.depth = depth_;
    v.rdma.depth_log2 = log2_of(depth_);
    v.id = mine_.qpn;
    v.rdma.ionic.version = context.response().version == 1 ? 1 : 2;
    v.rdma.completions = base + parts_.completions;
    v.rdma.cq_depth = cq_depth_;
    v.rdma.cq_depth_log2 = log2_of(cq_depth_);
    v.rdma.ionic.cq_id = made_.cq.number;
    v.rdma.doorbell = port_->doorbells.doorbell(context.doorbell_of(context.response().sq_type, copy_));
    v.rdma.ionic.cq_doorbell = port_->doorbells.doorbell(context.doorbell_of(context.response().cq_type, copy_));
    state.credits = depth_ - 1;  // a full ring would look empty
  }

 private:
  void prepare_receives(unsigned char* base) {
    const ionic_context& context = port_->context;
    const auto doorbell = [&](std::uint8_t type) { return port_->doorbells.host_doorbell(context.doorbell_of(type)); };
    receives_.emplace(ionic::receives({base + parts_.receives, base + parts_.receive_completions,
                                       log2_of(parts_.page / k_receive_bytes), log2_of(parts_.page / w::k_cqe_bytes),
                                       mine_.qpn, made_.receive_cq.number, doorbell(context.response().rq_type),
                                       doorbell(context.response().cq_type)}));
  }
  void check(const char* what, int err) const { uverbs::check_made(mine_, what, depth_, err); }

  const std::shared_ptr<ionic_port> port_;
  const std::uint32_t depth_, cq_depth_;
  const std::size_t copy_;  // of the doorbells
  const layout parts_;
  proxy::verbs_address mine_;
  gpu::buffer memory_;  // by parts_
  objects made_;
  std::optional<receive_queue<ionic::receives>> receives_;
};

std::unique_ptr<direct_nic> open(const proxy::verbs_port& port, const proxy::verbs_path& path,
                                 const direct_hooks& hooks) {
  const auto made = std::make_shared<ionic_port>(port, hooks);
  return uverbs::open_nic<ionic_send_queue>(made, &made->context.owner(), path, made->context.least_depth(),
                                            k_most_depth);
}

bool drives(const proxy::verbs_port& port) { return port.vendor == proxy::nic_vendor::pensando; }

std::string lacking(const std::string& device, const std::string& what) {
  return fmt::format(
      "RDMA device {}: the ionic driver of Linux {} has no {}; queues that kernels drive want ionic_rdma of Linux 6.18 "
      "or newer and firmware with RDMA",
      device, uverbs::kernel_release(), what);
}

// The smallest queue, made and ended. Empty, or what failed.
std::string try_queue(const std::string& device, ionic_context& context) {
  const std::uint32_t depth = context.least_depth();
  const layout parts(context.page(), depth, 2 * depth);
  uverbs::trial t(device, parts.end, lacking);
  objects made(context.owner());
  const std::uint8_t pipeline = context.take_pipeline();
  t.step("completion queue", "completion queues by system calls (UVERBS_METHOD_CQ_CREATE)", [&] {
    const auto memory =
        describe(t.memory() + parts.completions, std::size_t{2} * depth * w::k_cqe_bytes, w::k_cqe_bytes);
    return made.make_cq(pipeline, memory, &made.cq);
  });
  made.receive_cq = made.cq;
  t.step("queue pair", "queue pairs by system calls (UVERBS_METHOD_QP_CREATE)", [&] {
    return made.make_qp(pipeline, describe(t.memory(), std::size_t{depth} * w::k_wqe_bytes, w::k_wqe_bytes),
                        describe(t.memory() + parts.receives, parts.page, k_receive_bytes));
  });
  return t.why();
}

}  // namespace

std::string why_no_ionic_queues(const std::string& device, const std::string& file) {
  try {
    ionic_context context(device, file);
    if (const std::string what = context.lacks(); !what.empty()) return lacking(device, what);
    return try_queue(device, context);
  } catch (const error& e) {
    return e.what();
  }
}

std::string why_no_ionic_library(ibv_context* context, ibv_pd*, std::string*) {
  return fmt::format("RDMA device {}: XIO makes no queues by libionic", ibv_get_device_name(context->device));
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
