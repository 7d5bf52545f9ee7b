// SPDX-License-Identifier: MIT
#include "transport/rdma/mlx5/nic.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <random>

#include "base/error.hpp"
#include "transport/rdma/direct/verbs_nic.hpp"
#include "xio/wire/mlx5.hpp"

namespace xio::rdma {

namespace {

// Firmware's page of memory (rdma-core providers/mlx5/mlx5.h: MLX5_ADAPTER_PAGE_SIZE).
constexpr std::size_t k_page = 4096;
constexpr std::size_t k_slot = 64;
constexpr std::size_t k_entry = 64;
constexpr std::uint32_t k_most_depth = 32768;
// Records of 8 bytes, on lines of their own. Word 0 is the receive queue's, word 1 the send queue's.
constexpr std::size_t k_cq_record = 0, k_qp_record = 64, k_receive_cq_record = 128;

std::size_t whole_pages(std::size_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

// Why a command was not done: the firmware's status, or the kernel's errno where the firmware was not asked.
std::string why_refused(const mlx5::reply& a, int err) {
  return mlx5::status_of(a) != 0 ? mlx5::text_of(a) : errno_text(err);
}
const char* cure_of(const mlx5::reply& a, const char* without_status) {
  return mlx5::status_of(a) != 0 ? mlx5::cure_of(a) : without_status;
}

std::uint32_t domain_number(ibv_pd* domain) {
  mlx5dv_pd out{};
  mlx5dv_obj object{};
  object.pd.in = domain;
  object.pd.out = &out;
  if (const int err = mlx5dv_init_obj(&object, MLX5DV_OBJ_PD); err != 0)
    fail(XIO_ERR_UNSUPPORTED, "libmlx5 does not tell the number of a protection domain: {}", errno_text(err));
  return out.pdn;
}

}  // namespace

// --- The port ----------------------------------------------------------------------------------------

mlx5_port::mlx5_port(const proxy::verbs_port& port, direct_hooks hooks)
    : port_(port), hooks_(std::move(hooks)), registers_(port_, hooks_) {
  domain_ = domain_number(port_.domain.get());
  if (mlx5dv_devx_query_eqn(port_.context.get(), 0, &event_queue_) != 0)
    fail(XIO_ERR_UNSUPPORTED,
         "RDMA device {} port {} takes no firmware commands from users (DEVX): {}; grant CAP_NET_RAW, and update the "
         "NIC's firmware and driver",
         port_.identity.device, port_.identity.port, errno_text(errno));
  first_ = registers_.take();
}

std::shared_ptr<mlx5_register> mlx5_port::take_register() {
  return first_ != nullptr ? std::exchange(first_, nullptr) : registers_.take();
}

// --- A queue -----------------------------------------------------------------------------------------

mlx5_send_queue::layout::layout(std::uint32_t depth, bool receives)
    : slots(receives ? mlx5::receives::k_ring_bytes : 0),
      entries(slots + whole_pages(depth * k_slot)),
      receive_entries(entries + whole_pages(depth * k_entry)),
      records(receive_entries + (receives ? mlx5::receives::k_completion_bytes : 0)),
      end(records + k_page) {}
static_assert(mlx5::receives::k_ring_bytes % k_page == 0 && mlx5::receives::k_completion_bytes % k_page == 0);

mlx5_send_queue::mlx5_send_queue(std::shared_ptr<mlx5_port> port, std::uint32_t depth, bool receives)
    : port_(std::move(port)),
      register_(port_->take_register()),
      depth_(depth),
      mine_(port_->port().identity),
      ends_(text_of(mine_)),
      parts_(depth, receives),
      has_receives_(receives) {
  if (!std::has_single_bit(depth) || depth > std::min(k_most_depth, std::bit_floor(port_->port().max_wr)))
    fail(XIO_ERR_CONFIG,
         "a queue depth of {} is not possible on RDMA device {} port {}, which takes powers of two up to {}; set "
         "XIO_RING_DEPTH",
         depth, mine_.device, mine_.port, std::min(k_most_depth, std::bit_floor(port_->port().max_wr)));
  memory_ = gpu::buffer(parts_.end, port_->hooks().rings, k_page, gpu::purpose::completions);
  auto* base = memory_.as<unsigned char>();
  // No entry is valid yet: opcode 15.
  const std::vector<unsigned char> invalid(parts_.records - parts_.entries, 0xff);
  gpu::copy(base + parts_.entries, invalid.data(), invalid.size());
  slots_ = share(base, parts_.entries);
  entries_ = share(base + parts_.entries, parts_.receive_entries - parts_.entries);
  if (receives) receive_entries_ = share(base + parts_.receive_entries, mlx5::receives::k_completion_bytes);
  records_ = share(base + parts_.records, k_page);
  make_all();
  const auto record = [&](std::size_t at) { return reinterpret_cast<std::uint32_t*>(base + parts_.records + at); };
  if (receives)
    receives_.emplace(
        mlx5::receives(base, base + parts_.receive_entries, record(k_qp_record), record(k_receive_cq_record)));
  mine_.psn = std::random_device()() & 0xffffff;
  ends_ = text_of(mine_);
}

void mlx5_send_queue::make_all() {
  const auto log_depth = static_cast<std::uint32_t>(std::countr_zero(depth_));
  std::uint32_t cqn = 0, receive_cqn = 0;
  cq_ = make(
      "completion queue",
      mlx5::create_cq(
          {log_depth, register_->page_id(), port_->event_queue(), entries_->umem_id, {records_->umem_id, k_cq_record}}),
      &cqn);
  if (has_receives_)
    receive_cq_ = make("completion queue of receives",
                       mlx5::create_cq({mlx5::receives::k_log_entries,
                                        register_->page_id(),
                                        port_->event_queue(),
                                        receive_entries_->umem_id,
                                        {records_->umem_id, k_receive_cq_record},
                                        false}),
                       &receive_cqn);
  mlx5::qp_plan plan{
      log_depth, register_->page_id(),          port_->domain(), cqn, slots_->umem_id, {records_->umem_id, k_qp_record},
      false,     mlx5::receives::k_log_entries, receive_cqn};
  mlx5::reply why{};
  try {
    qp_ = make("queue pair", mlx5::create_qp(plan), &mine_.qpn, &why);
  } catch (const error&) {
    if (mlx5::status_of(why) != mlx5::k_bad_parameter) throw;
    // A device with a clock of real time only.
    plan.default_clock = true;
    qp_ = make("queue pair", mlx5::create_qp(plan), &mine_.qpn);
  }
}

mlx5_send_queue::owned<mlx5dv_devx_umem> mlx5_send_queue::share(unsigned char* from, std::size_t bytes) {
  ibv_context* context = port_->port().context.get();
  const proxy::memory_exporter& export_memory = port_->hooks().export_memory;
  const gpu::exported_memory memory = export_memory ? export_memory(from, bytes) : gpu::exported_memory{};
  owned<mlx5dv_devx_umem> umem;
  if (memory.fd >= 0) {
    mlx5dv_devx_umem_in in{};
    in.addr = reinterpret_cast<void*>(memory.offset);
    in.size = bytes;
    in.access = IBV_ACCESS_LOCAL_WRITE;
    in.pgsz_bitmap = k_page;
    in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
    in.dmabuf_fd = memory.fd;
    umem.reset(mlx5dv_devx_umem_reg_ex(context, &in));
    close(memory.fd);
  } else {
    umem.reset(mlx5dv_devx_umem_reg(context, from, bytes, IBV_ACCESS_LOCAL_WRITE));
  }
  if (umem == nullptr)
    fail(XIO_ERR_IO, "{}: {} bytes of queue memory are not taken by the firmware: {}; raise the limit of locked memory",
         ends_, bytes, errno_text(errno));
  return umem;
}

mlx5_send_queue::owned<mlx5dv_devx_obj> mlx5_send_queue::make(const char* what, const mlx5::command& c,
                                                              std::uint32_t* number, mlx5::reply* why) {
  mlx5::reply a{};
  owned<mlx5dv_devx_obj> object(
      mlx5dv_devx_obj_create(port_->port().context.get(), c.data(), c.size(), a.data(), a.size()));
  if (object == nullptr && why != nullptr) *why = a;
  if (object == nullptr)
    fail(XIO_ERR_IO, "{}: the firmware makes no {} of {} entries: {}; {}", ends_, what, depth_, why_refused(a, errno),
         cure_of(a, "see the kernel's log"));
  *number = mlx5::made_number(a);
  return object;
}

void mlx5_send_queue::modify(const char* step, const mlx5::command& c) {
  mlx5::reply a{};
  if (const int err = mlx5dv_devx_obj_modify(qp_.get(), c.data(), c.size(), a.data(), a.size()); err != 0)
    fail(XIO_ERR_IO, "{} does not go from {}: {}; {}", ends_, step, why_refused(a, err),
         cure_of(a, "check XIO_RDMA_*"));
}

// The firmware wants the peer's Ethernet address, which the kernel finds out for an address handle.
std::array<unsigned char, 6> mlx5_send_queue::mac_of(const proxy::verbs_address& remote, int pe,
                                                     const proxy::verbs_path& path) const {
  std::array<unsigned char, 6> mac{};
  if (mine_.link != proxy::link_layer::ethernet) return mac;
  ibv_ah_attr want{};
  want.is_global = 1;
  want.port_num = mine_.port;
  want.sl = path.sl;
  std::memcpy(want.grh.dgid.raw, remote.address.data(), remote.address.size());
  want.grh.sgid_index = static_cast<std::uint8_t>(mine_.gid_index);
  want.grh.hop_limit = path.hop_limit;
  want.grh.traffic_class = path.traffic_class;
  const auto drop = [](ibv_ah* a) { ibv_destroy_ah(a); };
  const std::unique_ptr<ibv_ah, decltype(drop)> handle(ibv_create_ah(port_->port().domain.get(), &want), drop);
  mlx5dv_ah out{};
  mlx5dv_obj object{};
  object.ah.in = handle.get();
  object.ah.out = &out;
  if (handle == nullptr || mlx5dv_init_obj(&object, MLX5DV_OBJ_AH) != 0)
    fail(XIO_ERR_IO, "{}: no Ethernet address is found for {} of PE {}: {}; check routes and cables", ends_,
         text_of(remote), pe, errno_text(errno));
  std::memcpy(mac.data(), out.av->rmac, mac.size());
  return mac;
}

void mlx5_send_queue::connect(const proxy::verbs_address& remote, int pe, const proxy::verbs_path& path,
                              dev::ring_view&) {
  check_pair(mine_, remote, pe);
  ends_ = fmt::format("{} <-> {} of PE {}", text_of(mine_), text_of(remote), pe);
  mlx5::path_plan plan{};
  plan.port = mine_.port;
  plan.needs_grh = port_->port().needs_grh;
  plan.pkey_index = path.pkey_index;
  plan.mtu = agree_mtu(mine_, remote, pe, path.mtu);
  plan.sl = path.sl;
  plan.traffic_class = path.traffic_class;
  plan.hop_limit = path.hop_limit;
  plan.timeout = path.timeout;
  plan.retry = path.retry;
  plan.rnr_retry = path.rnr_retry;
  plan.responder_depth = mine_.responder_depth;
  plan.initiator_depth = std::min(port_->port().initiator_depth, remote.responder_depth);
  // Queue pairs differ in it, so that networks spread them; from IB_ROCE_UDP_ENCAP_VALID_PORT_MIN (verbs.h) on.
  plan.source_port = static_cast<std::uint16_t>(0xc000 | ((mine_.qpn ^ remote.qpn) & 0x3fff));
  plan.remote_mac = mac_of(remote, pe, path);
  modify("RESET to INIT", mlx5::rst2init(mine_.qpn, plan));
  modify("INIT to RTR", mlx5::init2rtr(mine_.qpn, plan, mine_, remote));
  modify("RTR to RTS", mlx5::rtr2rts(mine_.qpn, plan, mine_.psn));
}

void mlx5_send_queue::fill(dev::ring_view& v, dev::ring_state&) const {
  auto* base = memory_.as<unsigned char>();
  v.slots = base + parts_.slots;
  v.depth = depth_;
  v.rdma.depth_log2 = static_cast<std::uint32_t>(std::countr_zero(depth_));
  v.id = mine_.qpn;
  v.rdma.completions = base + parts_.entries;
  v.rdma.mlx5.doorbell_record = reinterpret_cast<std::uint32_t*>(base + parts_.records + k_qp_record) + 1;
  v.rdma.doorbell = register_->doorbell();
}

// --- The NIC -----------------------------------------------------------------------------------------

namespace {

class mlx5_nic final : public verbs_nic {
 public:
  mlx5_nic(std::shared_ptr<mlx5_port> port, const proxy::verbs_path& path)
      : verbs_nic(port, port->port(), path, port->hooks()), port_(std::move(port)) {}
  std::unique_ptr<direct_queue> make_queue(std::uint32_t depth, std::uint32_t, bool receives) override {
    return std::make_unique<mlx5_send_queue>(port_, depth, receives);
  }

 private:
  const std::shared_ptr<mlx5_port> port_;
};

bool drives(const proxy::verbs_port& port) {
  return port.context != nullptr && mlx5dv_is_supported(port.context->device);
}

std::unique_ptr<direct_nic> open(const proxy::verbs_port& port, const proxy::verbs_path& path,
                                 const direct_hooks& hooks) {
  return std::make_unique<mlx5_nic>(std::make_shared<mlx5_port>(port, hooks), path);
}

}  // namespace

const direct_provider& mlx5_provider() {
  // The device counts slots from 0, in 16 bits.
  static constexpr direct_provider row{
      {"mlx5", dev::ring_kind::mlx5, wire::mlx5::k_inline_in_block, wire::mlx5::k_gather_bytes, 0, 1u << 16, true},
      nullptr,
      drives,
      open};
  return row;
}

}  // namespace xio::rdma
