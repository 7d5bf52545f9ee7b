// SPDX-License-Identifier: MIT
#include "transport/rdma/bnxt/nic.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>
#include <random>

#include "base/error.hpp"
#include "transport/rdma/bnxt/abi.hpp"
#include "transport/rdma/bnxt/receives.hpp"
#include "transport/rdma/direct/register_page.hpp"
#include "transport/rdma/uverbs/domain.hpp"
#include "transport/rdma/uverbs/kernel_nic.hpp"
#include "transport/rdma/uverbs/trial.hpp"
#include "xio/device/impl/bnxt.hpp"
#include "xio/wire/bnxt.hpp"

namespace xio::rdma {

namespace {

namespace w = wire::bnxt;

// The driver takes rings in pages of this size alone (ib_verbs.c, bnxt_re_setup_sginfo).
constexpr std::size_t k_page = 4096;
// The MSN table lies right behind the ring, and ends with the memory: firmware and libraries compute its place from
// either side, and here both find the same. For that ring and table must be whole pages.
constexpr std::uint32_t k_least_depth = k_page / sizeof(std::uint64_t);
// MSN entries have 16 bits for a slot.
constexpr std::uint32_t k_most_depth = bnxt::k_most_slots / w::k_wqe_slots;
// Doorbells carry an epoch and the MSN table its index from 0, so tickets start at a multiple of all.
constexpr std::uint64_t k_count_from = 1u << 17;

std::size_t whole_pages(std::size_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

// Where each part of a queue's memory begins.
struct layout {
  std::size_t table, receives, receive_completions, completions, end;
  layout(std::uint32_t depth, std::uint32_t cq_depth)
      : table(std::size_t{depth} * w::k_wqe_bytes),
        receives(table + depth * sizeof(std::uint64_t)),
        receive_completions(receives + k_page),
        completions(receive_completions + k_page),
        end(completions + whole_pages(std::size_t{cq_depth} * w::k_cqe_bytes)) {}
};
// Every queue pair has a receive queue. Only writes with immediate use it, and a completion queue of its own.
static_assert(bnxt::receives::k_entries * bnxt::receives::k_entry_slots * w::k_slot_bytes == k_page);
static_assert(bnxt::receives::k_completions * w::k_cqe_bytes == k_page);

// A context with the doorbell page that its completion queues use.
class bnxt_context {
 public:
  bnxt_context(const std::string& device, const std::string& file) : owner_(open(device, file)) {}
  uverbs::domain& owner() { return *owner_; }
  std::uint64_t own_page() const { return pd_.offset; }
  // Empty, or what the driver lacks, as far as it says.
  std::string lacks() const {
    if ((response_.mask & bnxt::k_has_mode) == 0) return "entries of variable size (Linux 6.11)";
    if (response_.mode != bnxt::k_mode_variable)
      return "entries of variable size on this NIC, which is older than Thor2";
    return (response_.mask & bnxt::k_msn_table) == 0 ? "the host's MSN table: the NIC's firmware is too old" : "";
  }

 private:
  std::unique_ptr<uverbs::domain> open(const std::string& device, const std::string& file) {
    const bnxt::context_request wanted{bnxt::k_any_size | bnxt::k_variable_entries};
    return std::make_unique<uverbs::domain>(device, file, uverbs::driver_bnxt,
                                            uverbs::driver_data{&wanted, sizeof wanted, &response_, sizeof response_},
                                            uverbs::driver_data{nullptr, 0, &pd_, sizeof pd_});
  }

  bnxt::context_response response_{};
  bnxt::pd_response pd_{};
  std::unique_ptr<uverbs::domain> owner_;
};

// --- A queue pair's objects --------------------------------------------------------------------------

// Memory of the process or, by a dma-buf, of the GPU. It is closed with this.
class described {
 public:
  described(const proxy::memory_exporter& exporter, unsigned char* at, std::size_t bytes) {
    const gpu::exported_memory m = exporter ? exporter(at, bytes) : gpu::exported_memory{};
    fd_ = m.fd;
    what_ = m.fd >= 0 ? uverbs::buffer_description{0, m.fd, 0, 0, m.offset, bytes}
                      : uverbs::buffer_description{1, 0, 0, 0, reinterpret_cast<std::uint64_t>(at), bytes};
  }
  ~described() {
    if (fd_ >= 0) close(fd_);
  }
  described(const described&) = delete;
  described& operator=(const described&) = delete;
  const uverbs::buffer_description& get() const { return what_; }

 private:
  int fd_;
  uverbs::buffer_description what_{};
};

// Handles and numbers; the queue pair goes first, then its page.
struct objects {
  const uverbs::domain* owner;
  struct completion_queue {
    std::uint32_t handle = 0, number = 0;
  };
  completion_queue cq, receive_cq;  // the second is the first where nothing is received
  std::uint32_t qp = 0, page = 0, qp_number = 0;
  std::uint64_t page_offset = 0;

  explicit objects(const uverbs::domain& o) : owner(&o) {}
  ~objects() { end(); }
  objects(const objects&) = delete;
  objects& operator=(const objects&) = delete;
  void end() noexcept {
    uverbs::destroy_qp(*owner, &qp);
    if (receive_cq.handle != cq.handle) uverbs::destroy_cq(*owner, &receive_cq.handle);
    uverbs::destroy_cq(*owner, &cq.handle);
    if (page == 0) return;
    uverbs::call c(bnxt::k_page_object, bnxt::page_free);
    c.use(bnxt::page_handle, page);
    owner->run(c);
    page = 0;
  }

  // Each returns 0 or the errno.
  int make_page() {
    bnxt::page_description made{};
    uverbs::call c(bnxt::k_page_object, bnxt::page_alloc);
    c.make(bnxt::page_handle).out(bnxt::page_region, &made).out(bnxt::page_offset, &page_offset);
    const int err = owner->run(c);
    if (err == 0) page = c.made(bnxt::page_handle);
    return err;
  }
  int make_cq(std::uint32_t entries, const uverbs::buffer_description& memory, completion_queue* to) {
    const bnxt::cq_request wanted{0, 0, bnxt::k_cq_of_given_size};
    bnxt::cq_response made{};
    std::uint32_t given = 0;
    uverbs::call c(uverbs::obj_cq, uverbs::cq::create);
    c.make(uverbs::cq::handle).in(uverbs::cq::entries, entries).in(uverbs::cq::user_handle, std::uint64_t{0});
    c.in(uverbs::cq::vector, std::uint32_t{0}).out(uverbs::cq::entries_made, &given).in(uverbs::cq::buffer, memory);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner->run(c);
    if (err != 0) return err;
    *to = {c.made(uverbs::cq::handle), made.number};
    return given == entries ? 0 : EPROTO;
  }
  int make_qp(std::uint32_t depth, const uverbs::buffer_description& sends,
              const uverbs::buffer_description& receives) {
    const bnxt::qp_request wanted{0, 0, 0, bnxt::k_qp_of_given_size, depth * w::k_wqe_slots, depth};
    bnxt::qp_response made{};
    const uverbs::queue_capacity capacity{depth, bnxt::receives::k_entries, w::k_max_sges, bnxt::receives::k_spans,
                                          w::k_inline_bytes};
    uverbs::queue_capacity given{};
    std::uint32_t number = 0;
    uverbs::call c(uverbs::obj_qp, uverbs::qp::create);
    c.make(uverbs::qp::handle).use(uverbs::qp::pd, owner->pd()).use(uverbs::qp::send_cq, cq.handle);
    c.use(uverbs::qp::receive_cq, receive_cq.handle)
        .in(uverbs::qp::user_handle, std::uint64_t{0})
        .in(uverbs::qp::capacity, capacity);
    c.choose(uverbs::qp::type, uverbs::qp::k_reliable).out(uverbs::qp::capacity_made, &given);
    c.out(uverbs::qp::number, &number).in(uverbs::qp::send_buffer, sends).in(uverbs::qp::receive_buffer, receives);
    c.use(bnxt::k_qp_page, page);
    uverbs::add(c, {&wanted, sizeof wanted, &made, sizeof made});
    const int err = owner->run(c);
    if (err != 0) return err;
    qp = c.made(uverbs::qp::handle);
    qp_number = made.number;
    return 0;
  }
};

// --- A NIC -------------------------------------------------------------------------------------------

struct bnxt_port {
  bnxt_port(const proxy::verbs_port& p, const direct_hooks& h)
      : port(p),
        hooks(h),
        context(p.identity.device, p.kernel_file),
        completions(context.owner(), context.own_page(), k_page, hooks) {}
  const proxy::verbs_port port;
  const direct_hooks hooks;
  bnxt_context context;
  const register_page completions;  // where all completion queues of the context are announced
};

class bnxt_send_queue final : public direct_queue {
 public:
  bnxt_send_queue(std::shared_ptr<bnxt_port> port, std::uint32_t depth, std::uint32_t cq_depth, bool receives)
      : port_(std::move(port)),
        depth_(depth),
        cq_depth_(cq_depth),
        parts_(depth, cq_depth),
        mine_(port_->port.identity),
        memory_(parts_.end, port_->hooks.rings, k_page, gpu::purpose::completions),
        made_(port_->context.owner()) {
    auto* base = memory_.as<unsigned char>();
    // The first lap's completions have the phase that zero has not.
    const std::vector<unsigned char> zero(parts_.end, 0);
    gpu::copy(base, zero.data(), zero.size());
    check("doorbell page", made_.make_page());
    const auto& exporter = port_->hooks.export_memory;
    const described sends(exporter, base, parts_.receives), entries(exporter, base + parts_.receives, k_page),
        receive_completions(exporter, base + parts_.receive_completions, k_page),
        completions(exporter, base + parts_.completions, parts_.end - parts_.completions);
    check("completion queue", made_.make_cq(cq_depth, completions.get(), &made_.cq));
    made_.receive_cq = made_.cq;
    if (receives)
      check("completion queue of receives",
            made_.make_cq(bnxt::receives::k_completions, receive_completions.get(), &made_.receive_cq));
    check("queue pair", made_.make_qp(depth, sends.get(), entries.get()));
    page_ = std::make_unique<register_page>(port_->context.owner(), made_.page_offset, k_page, port_->hooks);
    mine_.qpn = made_.qp_number;
    mine_.psn = std::random_device()() & w::k_psn_mask;
    if (receives)
      receives_.emplace(
          bnxt::receives({base + parts_.receives, base + parts_.receive_completions, mine_.qpn, made_.receive_cq.number,
                          page_->host_doorbell(0), port_->completions.host_doorbell(0)}));
  }

  const proxy::verbs_address& identity() const override { return mine_; }
  void connect(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path, dev::ring_view& v) override {
    uverbs::connect({&port_->context.owner(), made_.qp, &port_->port}, mine_, remote, pe, path);
    v.rdma.bnxt.path_mtu = static_cast<std::uint16_t>(proxy::mtu_bytes(agree_mtu(mine_, remote, pe, path.mtu)));
  }
  bool poll_receives(immediate_target& to) override { return receives_ && receives_->poll(to); }
  void stop() noexcept override { uverbs::destroy_qp(port_->context.owner(), &made_.qp); }
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
    v.rdma.bnxt.msn_table = reinterpret_cast<std::uint64_t*>(base + parts_.table);
    v.rdma.completions = base + parts_.completions;
    v.rdma.cq_depth = cq_depth_;
    v.rdma.cq_depth_log2 = static_cast<std::uint32_t>(std::countr_zero(cq_depth_));
    v.rdma.bnxt.cq_id = made_.cq.number;
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
  objects made_;
  std::unique_ptr<register_page> page_;
  std::optional<receive_queue<bnxt::receives>> receives_;
};

std::unique_ptr<direct_nic> open(const proxy::verbs_port& port, const proxy::verbs_path& path,
                                 const direct_hooks& hooks) {
  return std::make_unique<uverbs::nic_of<bnxt_port, bnxt_send_queue>>(
      std::make_shared<bnxt_port>(port, hooks), k_least_depth, k_most_depth, path.relaxed_ordering);
}

bool drives(const proxy::verbs_port& port) { return port.vendor == proxy::nic_vendor::broadcom; }

std::string too_old(const std::string& device, const std::string& what) {
  return fmt::format("RDMA device {}: bnxt_re of Linux {} has no {}; queues that kernels drive want Linux 7.2 or newer",
                     device, uverbs::kernel_release(), what);
}

}  // namespace

std::string why_no_bnxt_queues(const std::string& device, const std::string& file) {
  try {
    bnxt_context context(device, file);
    if (const std::string what = context.lacks(); !what.empty()) return too_old(device, what);
    const layout parts(k_least_depth, 2 * k_least_depth);
    uverbs::trial t(device, parts.end, too_old);
    const described sends(nullptr, t.memory(), parts.receives), receives(nullptr, t.memory() + parts.receives, k_page),
        completions(nullptr, t.memory() + parts.completions, parts.end - parts.completions);
    objects made(context.owner());
    t.step("doorbell page", "doorbell pages for users (BNXT_RE_METHOD_DBR_ALLOC)", [&] { return made.make_page(); });
    t.step("completion queue", "completion queues in given memory (UVERBS_ATTR_CREATE_CQ_BUF_UMEM)",
           [&] { return made.make_cq(2 * k_least_depth, completions.get(), &made.cq); });
    made.receive_cq = made.cq;
    t.step("queue pair", "queue pairs of given sizes (BNXT_RE_QP_REQ_MASK_FIXED_QUE_ATTR)",
           [&] { return made.make_qp(k_least_depth, sends.get(), receives.get()); });
    return t.why();
  } catch (const error& e) {
    return e.what();
  }
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
