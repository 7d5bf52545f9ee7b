// SPDX-License-Identifier: MIT
// Queues as Linux 7.2's bnxt_re makes them for users (drivers/infiniband/hw/bnxt_re/ib_verbs.c, uapi.c;
// drivers/infiniband/core/uverbs_std_types_cq.c, _qp.c, verbs.c): what is checked, in its order, and the errno.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>

#include <bit>
#include <cstdio>
#include <optional>

#include "uverbs/kernel/context.hpp"

namespace uverbs {
namespace {

// By their place in the calls, for headers of the build may be older; see the file's head.
constexpr std::uint16_t k_cq_buffer = 12, k_rq_buffer = 16, k_sq_buffer = 17, k_qp_page = 0x1002;
constexpr std::uint16_t k_page_alloc = 0x1000, k_page_free = 0x1001;
constexpr std::uint16_t k_page_handle = 0x1000, k_page_region = 0x1001, k_page_offset = 0x1002;
constexpr std::uint32_t k_page = 4096, k_slot = 16, k_msn = 8, k_wqe_slots = 8;
constexpr std::uint32_t k_most_cqes = 1u << 17, k_most_requests = 65535, k_most_spans = 13, k_most_inline = 208;
constexpr std::uint32_t k_most_slots = 65536, k_most_depth = 16;
constexpr std::uint8_t k_mtu_4096 = 5;

struct cq_request {
  std::uint64_t address, handle, mask;
};
struct qp_request {
  std::uint64_t send_address, receive_address, handle, mask;
  std::uint32_t slots, sequence_entries;
};
struct buffer {
  std::uint32_t type;
  std::int32_t fd;
  std::uint32_t flags, optional_flags;
  std::uint64_t address, bytes;
};

std::uint64_t whole_pages(std::uint64_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

// The driver's own part of a call; a request that is shorter than it may be has zeroes behind.
template <class T>
std::optional<T> driver_request(const call& c, std::size_t least) {
  if (c.room(UVERBS_ATTR_UHW_IN) < least) return {};
  T out{};
  std::memcpy(&out, c.input(UVERBS_ATTR_UHW_IN), std::min(c.room(UVERBS_ATTR_UHW_IN), sizeof out));
  return out;
}

// ib_umem_get_attr_or_va, and bnxt_re_setup_sginfo. 0, or the errno.
int pin(const call& c, std::uint16_t id, std::uint64_t address, std::uint64_t bytes, bool refused, unsigned char** at) {
  if (bytes == 0) return EINVAL;
  buffer b{1, 0, 0, 0, address, bytes};
  if (c.find(id) != nullptr && !c.read(id, &b)) return EINVAL;
  if (b.flags != 0 || b.type > 1 || b.bytes < bytes) return EINVAL;
  if (b.type == 0) {
    if (refused) return EFAULT;
    *at = map_dmabuf(b.fd, b.address, b.bytes);
    return *at == nullptr ? EINVAL : 0;
  }
  if (refused || !is_mapped(b.address, b.bytes)) return EFAULT;
  if (b.address % k_page != 0) return EINVAL;
  *at = reinterpret_cast<unsigned char*>(b.address);
  return 0;
}

}  // namespace

int context::bnxt_page(const call& c) {
  if (is_old()) return EPROTONOSUPPORT;
  if (c.method() == k_page_free) return remove(static_cast<std::uint32_t>(c.value(k_page_handle)), kind::page);
  if (c.method() != k_page_alloc) return EPROTONOSUPPORT;
  if (const int err = c.check({k_page_handle, k_page_region, k_page_offset}); err != 0) return err;
  object o{kind::page};
  o.id = device_.add_page();
  const std::uint32_t region[4] = {o.id};
  const std::uint64_t offset = std::uint64_t{o.id} << k_shift;
  c.set_handle(k_page_handle, keep(o));
  c.write(k_page_region, region, sizeof region);
  c.write(k_page_offset, &offset, sizeof offset);
  return 0;
}

int context::bnxt_cq(const call& c) {
  if (c.method() == UVERBS_METHOD_CQ_DESTROY)
    return remove(static_cast<std::uint32_t>(c.value(UVERBS_ATTR_DESTROY_CQ_HANDLE)), kind::queue);
  const bool old = is_old();
  if (const int err =
          c.check({UVERBS_ATTR_CREATE_CQ_HANDLE, UVERBS_ATTR_CREATE_CQ_CQE, UVERBS_ATTR_CREATE_CQ_USER_HANDLE,
                   UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, UVERBS_ATTR_CREATE_CQ_RESP_CQE},
                  {UVERBS_ATTR_CREATE_CQ_FLAGS, UVERBS_ATTR_CREATE_CQ_EVENT_FD,
                   old ? std::uint16_t{UVERBS_ATTR_CREATE_CQ_FLAGS} : k_cq_buffer});
      err != 0)
    return err;
  const auto entries = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_CQ_CQE));
  if (entries == 0 || static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR)) != 0) return EINVAL;
  if (c.value(UVERBS_ATTR_CREATE_CQ_FLAGS) != 0) return EOPNOTSUPP;
  if (entries > k_most_cqes) return EINVAL;
  const auto wanted = driver_request<cq_request>(c, 16);
  if (!wanted) return EINVAL;
  // Without the mark the driver makes another number of entries; nobody here wants that.
  if (wanted->mask != 1) return EOPNOTSUPP;
  object o{kind::queue};
  if (const int err = pin(c, k_cq_buffer, wanted->address, std::uint64_t{entries} * 32, device_.chosen().no_pin, &o.at);
      err != 0)
    return err;
  o.id = next_cq_number_++;
  o.entries = entries;
  c.set_handle(UVERBS_ATTR_CREATE_CQ_HANDLE, keep(o));
  c.write(UVERBS_ATTR_CREATE_CQ_RESP_CQE, &entries, sizeof entries);
  const std::uint32_t response[6] = {o.id};
  c.write(UVERBS_ATTR_UHW_OUT, response, sizeof response);
  return 0;
}

int context::bnxt_qp(const call& c) {
  if (c.method() == UVERBS_METHOD_QP_DESTROY)
    return remove(static_cast<std::uint32_t>(c.value(UVERBS_ATTR_DESTROY_QP_HANDLE)), kind::pair);
  if (const int err = c.check(
          {UVERBS_ATTR_CREATE_QP_HANDLE, UVERBS_ATTR_CREATE_QP_USER_HANDLE, UVERBS_ATTR_CREATE_QP_CAP,
           UVERBS_ATTR_CREATE_QP_TYPE, UVERBS_ATTR_CREATE_QP_RESP_CAP, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM},
          {UVERBS_ATTR_CREATE_QP_PD_HANDLE, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE,
           UVERBS_ATTR_CREATE_QP_FLAGS, k_rq_buffer, k_sq_buffer, k_qp_page});
      err != 0)
    return err;
  object* domain = find(c.value(UVERBS_ATTR_CREATE_QP_PD_HANDLE), kind::domain);
  object* cq = find(c.value(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE), kind::queue);
  object* receive_cq = find(c.value(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE), kind::queue);
  object* page = find(c.value(k_qp_page), kind::page);
  if (domain == nullptr || cq == nullptr || receive_cq == nullptr) return ENOENT;
  // The page of the context is for the vendor's library alone.
  if (page == nullptr && (!library_ || c.find(k_qp_page) != nullptr)) return ENOENT;
  if (c.value(UVERBS_ATTR_CREATE_QP_TYPE) != IB_UVERBS_QPT_RC || c.value(UVERBS_ATTR_CREATE_QP_FLAGS) != 0)
    return EOPNOTSUPP;
  ib_uverbs_qp_cap cap{};
  if (!c.read(UVERBS_ATTR_CREATE_QP_CAP, &cap)) return EINVAL;
  const auto wanted = driver_request<qp_request>(c, 24);
  if (!wanted) return EINVAL;
  if ((wanted->mask & ~1ull) != 0) return EOPNOTSUPP;
  if (device_.chosen().no_fixed && wanted->mask != 0) return EOPNOTSUPP;
  if (cap.max_send_wr > k_most_requests || cap.max_recv_wr > k_most_requests || cap.max_send_sge > k_most_spans ||
      cap.max_recv_sge > k_most_spans || cap.max_inline_data > k_most_inline)
    return EINVAL;
  if (variable_ && (wanted->slots == 0 || wanted->slots > k_most_slots)) return EINVAL;
  if (wanted->mask == 0 || !variable_) return EOPNOTSUPP;
  if (wanted->sequence_entries == 0 || wanted->sequence_entries > std::bit_ceil(wanted->slots / 2)) return EINVAL;
  object o{kind::pair};
  const std::uint64_t ring = std::uint64_t{wanted->slots} * k_slot,
                      table = std::uint64_t{wanted->sequence_entries} * k_msn;
  const bool refused = device_.chosen().no_pin;
  if (const int err = pin(c, k_sq_buffer, wanted->send_address, whole_pages(ring + table), refused, &o.at); err != 0)
    return err;
  unsigned char* receives = nullptr;
  const std::uint64_t receive_bytes = std::uint64_t{cap.max_recv_wr} * (32 + 16 * cap.max_recv_sge);
  if (const int err = pin(c, k_rq_buffer, wanted->receive_address, whole_pages(receive_bytes), refused, &receives);
      err != 0)
    return err;
  // The device's own rules: the table has one place, and as many entries as the ring has of 8 slots or of 2.
  const std::uint32_t depth = wanted->slots / k_wqe_slots, laps = wanted->sequence_entries / std::max(depth, 1u);
  if ((ring + table) % k_page != 0 || wanted->sequence_entries != laps * depth || (laps != 1 && laps != 4) ||
      !std::has_single_bit(wanted->slots)) {
    std::fprintf(stderr, "simulated RDMA device: %u slots and %u MSN entries have no one place for the table\n",
                 wanted->slots, wanted->sequence_entries);
    return EIO;
  }
  o.id = device_.next_number();
  o.entries = depth;
  o.table_log2 = laps == 4 ? 2 : 0;
  o.parent = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_QP_PD_HANDLE));
  o.cq = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE));
  o.page = static_cast<std::uint32_t>(c.value(k_qp_page));
  o.receive_cq = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE));
  o.receives = receives;
  o.receive_entries = cap.max_recv_wr;
  o.receive_bytes = 32 + 16 * cap.max_recv_sge;
  ++domain->users;
  ++cq->users;
  ++receive_cq->users;
  if (page != nullptr) ++page->users;
  c.set_handle(UVERBS_ATTR_CREATE_QP_HANDLE, keep(o));
  c.write(UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof cap);
  c.write(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &o.id, sizeof o.id);
  const std::uint32_t response[2] = {o.id, 0};
  c.write(UVERBS_ATTR_UHW_OUT, response, sizeof response);
  return 0;
}

// drivers/infiniband/core/verbs.c, qp_state_table: what each step must set, and here may.
int context::modify_pair(const call& c) {
  ib_uverbs_modify_qp m{};
  if (!c.read(UVERBS_ATTR_CORE_IN, &m)) return ENOSPC;
  object* o = find(m.qp_handle, kind::pair);
  if (o == nullptr) return EINVAL;
  firmware::queue_pair& q = o->connection;
  struct step {
    firmware::qp_state from, to;
    std::uint32_t mask;
  };
  using state = firmware::qp_state;
  // IB_QP_STATE and what the step needs, by enum ib_qp_attr_mask.
  static constexpr step k_steps[] = {{state::reset, state::init, 1 | 8 | 16 | 32},
                                     {state::init, state::rtr, 1 | 128 | 256 | 4096 | 32768 | 131072 | 1048576},
                                     {state::rtr, state::rts, 1 | 512 | 1024 | 2048 | 8192 | 65536}};
  const auto found = std::ranges::find_if(k_steps, [&](const step& s) {
    return s.from == q.state && static_cast<std::uint8_t>(s.to) == m.qp_state && s.mask == m.attr_mask;
  });
  if (found == std::end(k_steps)) return EINVAL;
  if (found->to == state::init) {
    if (m.port_num != 1 || m.pkey_index != 0) return EINVAL;
    if ((m.qp_access_flags & 2) != 0) q.may |= xio::proxy::remote_write;
    if ((m.qp_access_flags & 4) != 0) q.may |= xio::proxy::remote_read;
    if ((m.qp_access_flags & 8) != 0) q.may |= xio::proxy::remote_atomic;
  } else if (found->to == state::rtr) {
    unsigned char mac[6];
    if (m.dest.is_global == 0 || m.dest.port_num != 1 || m.dest.sgid_index != 0) return EINVAL;
    if (m.path_mtu == 0 || m.path_mtu > k_mtu_4096 || m.max_dest_rd_atomic > k_most_depth) return EINVAL;
    if (device_.chosen().no_way || !device_.mac_of(m.dest.dgid, mac)) return ETIMEDOUT;
    std::copy_n(m.dest.dgid, 16, q.remote_gid.begin());
    q.remote_qpn = m.dest_qp_num;
    q.receive_psn = m.rq_psn;
    o->mtu = 128u << m.path_mtu;
  } else {
    q.timeout = m.timeout;
    q.retries = m.retry_cnt;
    q.rnr_retries = m.rnr_retry;
    q.send_psn = m.sq_psn;
  }
  q.state = found->to;
  if (q.state == state::rtr) device_.connect(o->id, q);
  if (q.state == state::rtr && o->receive_cq != o->cq) start_receives(*o);
  if (q.state == state::rts) start_pair(*o);
  return 0;
}

void context::start_receives(const object& o) {
  const object *cq = find(o.receive_cq, kind::queue), *page = find(o.page, kind::page);
  auto receives =
      device_.chosen().nic == nic_kind::bnxt
          ? make_bnxt_receives(o.id, {o.receives, cq->at, o.receive_entries, o.receive_bytes,
                                      page == nullptr ? own_page_ : page->id, cq->entries, cq->id, own_page_})
          : make_ionic_receives(o.id, {o.receives, cq->at, o.receive_entries, cq->entries, cq->id, own_page_,
                                       device::k_ionic_rq_type, device::k_ionic_cq_type});
  device_.add_receives(o.id, std::move(receives));
}

void context::start_pair(const object& o) {
  const object *cq = find(o.cq, kind::queue), *page = find(o.page, kind::page);
  const rings r{o.at,  o.entries,   page == nullptr ? own_page_ : page->id, cq->at, cq->entries, cq->id, own_page_,
                o.mtu, o.table_log2};
  if (device_.chosen().nic == nic_kind::bnxt)
    device_.start_bnxt(o.id, o.connection, r);
  else
    device_.start_ionic(o.id, o.connection, r);
}

}  // namespace uverbs
