// SPDX-License-Identifier: MIT
// The calls of every RDMA device: what it is, domains, memory, address handles.
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "uverbs/kernel/context.hpp"

namespace uverbs {
namespace {

// enum ib_port_state, ib_mtu, ib_port_phys_state; link layer 2 is Ethernet.
constexpr std::uint8_t k_down = 1, k_active = 4, k_mtu_4096 = 5, k_disabled = 3, k_link_up = 5, k_ethernet = 2;

// Of the driver's part of a context's request: the vendor's library asks (tests/uverbs/vendor).
constexpr std::uint64_t k_of_library = 1ull << 63;

ib_uverbs_gid_entry first_gid(const device& d) {
  ib_uverbs_gid_entry e{};
  e.port_num = 1;
  e.gid_type = IB_UVERBS_GID_TYPE_ROCE_V2;
  e.netdev_ifindex = 1;
  d.gid(reinterpret_cast<unsigned char*>(e.gid));
  return e;
}

}  // namespace

// bnxt_re_alloc_ucontext. Thor2 has entries of variable size and the host's MSN table.
int context::bnxt_context(const call& c) {
  std::uint64_t wanted = 0;
  std::memcpy(&wanted, c.input(UVERBS_ATTR_UHW_IN), std::min(c.room(UVERBS_ATTR_UHW_IN), sizeof wanted));
  if (library_) wanted &= ~k_of_library;
  if ((wanted & ~3ull) != 0) return EOPNOTSUPP;
  const std::uint32_t mode = device_.chosen().static_mode ? 0 : 1;
  variable_ = (wanted & 2) != 0 && mode != 0;
  const std::uint64_t mask = 0x1 | 0x40 | ((wanted & 1) != 0 ? 0x10 : 0) | ((wanted & 2) != 0 ? 0x2 : 0);
  std::uint32_t r[12] = {0, 1 << 16, 4096, 32, 1 << 17, 0, static_cast<std::uint32_t>(mask), 0, 0x1760, 0, mode, 0};
  c.write(UVERBS_ATTR_UHW_OUT, r, sizeof r);
  return 0;
}

int context::get_context(const call& c) {
  if (ready_) return EINVAL;
  if (device_.chosen().nic != nic_kind::mlx5) {
    std::uint64_t wanted = 0;
    std::memcpy(&wanted, c.input(UVERBS_ATTR_UHW_IN), std::min(c.room(UVERBS_ATTR_UHW_IN), sizeof wanted));
    library_ = device_.chosen().vendor && (wanted & k_of_library) != 0;
    const int err = device_.chosen().nic == nic_kind::bnxt ? bnxt_context(c) : ionic_context(c);
    ready_ = err == 0;
    return err;
  }
  mlx5_ib_alloc_ucontext_req_v2 wanted{};
  std::memcpy(&wanted, c.input(UVERBS_ATTR_UHW_IN), std::min(c.room(UVERBS_ATTR_UHW_IN), sizeof wanted));
  devx_ = (wanted.flags & MLX5_IB_ALLOC_UCTX_DEVX) != 0;
  // The kernel gives no DEVX to those without CAP_NET_RAW, or where the firmware has no user contexts.
  if (devx_ && device_.chosen().no_devx) return EPERM;
  ready_ = true;
  const std::uint32_t vectors = 1;
  const std::uint64_t support = 0;
  c.write(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof vectors);
  c.write(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, sizeof support);
  mlx5_ib_alloc_ucontext_resp r{};
  r.qp_tab_size = 1 << 17;
  r.bf_reg_size = 512;
  r.cache_line_size = 64;
  r.max_sq_desc_sz = 1008;
  r.max_rq_desc_sz = 512;
  r.max_send_wqebb = 32768;
  r.max_recv_wr = 32768;
  r.max_srq_recv_wr = 32767;
  r.num_ports = 1;
  r.response_length = sizeof r;
  r.cqe_version = 1;
  r.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
  r.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
  r.log_uar_size = 12;
  r.num_uars_per_page = 1;
  r.num_dyn_bfregs = 512;
  c.write(UVERBS_ATTR_UHW_OUT, &r, sizeof r);
  return 0;
}

int context::query_port(const call& c) {
  if (static_cast<std::uint8_t>(c.value(UVERBS_ATTR_QUERY_PORT_PORT_NUM)) != 1) return EINVAL;
  ib_uverbs_query_port_resp_ex r{};
  const bool down = device_.chosen().port_down;
  auto& p = r.legacy_resp;
  p.state = down ? k_down : k_active;
  p.phys_state = down ? k_disabled : k_link_up;
  p.max_mtu = p.active_mtu = k_mtu_4096;
  p.gid_tbl_len = p.pkey_tbl_len = 1;
  p.active_width = 2;
  p.active_speed = 64;
  p.link_layer = k_ethernet;
  p.max_msg_sz = 1u << 30;
  c.write(UVERBS_ATTR_QUERY_PORT_RESP, &r, sizeof r);
  return 0;
}

int context::query_gids(const call& c) {
  const ib_uverbs_gid_entry entry = first_gid(device_);
  if (c.method() == UVERBS_METHOD_QUERY_GID_ENTRY) {
    if (static_cast<std::uint32_t>(c.value(UVERBS_ATTR_QUERY_GID_ENTRY_PORT)) != 1) return EINVAL;
    if (static_cast<std::uint32_t>(c.value(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX)) != 0) return ENODATA;
    c.write(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof entry);
    return 0;
  }
  if (c.value(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE) != sizeof entry) return EINVAL;
  const std::uint64_t count = 1;
  if (c.room(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES) < sizeof entry) return EINVAL;
  c.write(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, &entry, sizeof entry);
  c.write(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &count, sizeof count);
  return 0;
}

int context::on_device(const call& c) {
  if (c.method() == UVERBS_METHOD_GET_CONTEXT) return get_context(c);
  if (!ready_) return EINVAL;
  switch (c.method()) {
    case UVERBS_METHOD_QUERY_PORT: return query_port(c);
    case UVERBS_METHOD_QUERY_GID_TABLE:
    case UVERBS_METHOD_QUERY_GID_ENTRY: return query_gids(c);
    case UVERBS_METHOD_INVOKE_WRITE: return write_command(c);
    default: return EPROTONOSUPPORT;
  }
}

int context::alloc_domain(const call& c) {
  const bool ionic = device_.chosen().nic == nic_kind::ionic;
  if (ionic && c.room(UVERBS_ATTR_UHW_IN) != 0) return EOPNOTSUPP;  // ib_no_udata_io
  object o{kind::domain};
  o.id = device_.add_domain();
  const std::uint32_t handle = keep(o);
  c.write(UVERBS_ATTR_CORE_OUT, &handle, sizeof handle);
  if (device_.chosen().nic == nic_kind::bnxt) {
    if (own_page_ == 0) own_page_ = device_.add_page();
    const std::uint64_t offset = std::uint64_t{own_page_} << k_shift;
    std::uint32_t r[4] = {o.id, own_page_};
    std::memcpy(r + 2, &offset, sizeof offset);
    c.write(UVERBS_ATTR_UHW_OUT, r, sizeof r);
    return 0;
  }
  if (ionic) return 0;
  mlx5_ib_alloc_pd_resp r{};
  r.pdn = o.id;
  c.write(UVERBS_ATTR_UHW_OUT, &r, sizeof r);
  return 0;
}

int context::register_memory(const call& c) {
  ib_uverbs_reg_mr wanted{};
  if (!c.read(UVERBS_ATTR_CORE_IN, &wanted)) return EINVAL;
  object* domain = find(wanted.pd_handle, kind::domain);
  if (domain == nullptr) return EINVAL;
  const std::uint32_t access = wanted.access_flags;
  constexpr std::uint32_t k_known = IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE |
                                    IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_ATOMIC |
                                    IB_UVERBS_ACCESS_RELAXED_ORDERING;
  const bool writes = (access & (IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC)) != 0;
  if ((access & ~k_known) != 0 || (writes && (access & IB_UVERBS_ACCESS_LOCAL_WRITE) == 0)) return EINVAL;
  if (wanted.start != wanted.hca_va) return EINVAL;
  if (device_.chosen().no_register || !is_mapped(wanted.start, wanted.length)) return EFAULT;
  namespace p = xio::proxy;
  std::uint32_t may = p::local_read;
  if ((access & IB_UVERBS_ACCESS_LOCAL_WRITE) != 0) may |= p::local_write;
  if ((access & IB_UVERBS_ACCESS_REMOTE_READ) != 0) may |= p::remote_read;
  if ((access & IB_UVERBS_ACCESS_REMOTE_WRITE) != 0) may |= p::remote_write;
  if ((access & IB_UVERBS_ACCESS_REMOTE_ATOMIC) != 0) may |= p::remote_atomic;
  object o{kind::memory};
  o.parent = wanted.pd_handle;
  o.id = device_.keys().add({wanted.start, wanted.length, reinterpret_cast<unsigned char*>(wanted.start), may});
  if (o.id == 0) return ENOMEM;
  ++domain->users;
  ib_uverbs_reg_mr_resp r{};
  r.mr_handle = keep(o);
  r.lkey = r.rkey = o.id;
  c.write(UVERBS_ATTR_CORE_OUT, &r, sizeof r);
  return 0;
}

int context::create_address(const call& c) {
  ib_uverbs_create_ah wanted{};
  if (!c.read(UVERBS_ATTR_CORE_IN, &wanted) || find(wanted.pd_handle, kind::domain) == nullptr) return EINVAL;
  if (wanted.attr.is_global == 0 || wanted.attr.port_num != 1 || wanted.attr.grh.sgid_index != 0) return EINVAL;
  mlx5_ib_create_ah_resp r{};
  r.response_length = sizeof r;
  // The kernel waits for the neighbour and gives up.
  if (!device_.mac_of(wanted.attr.grh.dgid, r.dmac)) return ETIMEDOUT;
  const std::uint32_t handle = keep({kind::address});
  c.write(UVERBS_ATTR_CORE_OUT, &handle, sizeof handle);
  c.write(UVERBS_ATTR_UHW_OUT, &r, sizeof r);
  return 0;
}

int context::query_device(const call& c, bool extended) {
  ib_uverbs_ex_query_device_resp r{};
  r.base.max_qp = 1 << 17;
  r.base.max_qp_wr = device_.chosen().shallow ? 16 : 32768;
  r.base.max_cq = 1 << 24;
  r.base.max_cqe = 4194303;
  r.base.max_mr = 1 << 24;
  r.base.max_pd = 1 << 24;
  r.base.max_mr_size = ~0ull;
  r.base.page_size_cap = ~0xfffull;
  r.base.vendor_id = 0x2c9;
  r.base.vendor_part_id = 4129;
  r.base.atomic_cap = 1;
  r.base.max_qp_rd_atom = r.base.max_qp_init_rd_atom = 16;
  r.base.phys_port_cnt = 1;
  r.base.max_sge = 30;
  r.base.max_pkeys = 128;
  r.base.local_ca_ack_delay = 16;
  r.response_length = sizeof r;
  if (!extended) {
    c.write(UVERBS_ATTR_CORE_OUT, &r.base, sizeof r.base);
    return 0;
  }
  c.write(UVERBS_ATTR_CORE_OUT, &r, sizeof r);
  mlx5_ib_query_device_resp u{};
  u.response_length = sizeof u;
  c.write(UVERBS_ATTR_UHW_OUT, &u, sizeof u);
  return 0;
}

int context::write_command(const call& c) {
  const auto command = static_cast<std::uint32_t>(c.value(UVERBS_ATTR_WRITE_CMD));
  switch (command) {
    case IB_USER_VERBS_CMD_ALLOC_PD: return alloc_domain(c);
    case IB_USER_VERBS_CMD_REG_MR: return register_memory(c);
    case IB_USER_VERBS_CMD_MODIFY_QP: return device_.chosen().nic == nic_kind::mlx5 ? EOPNOTSUPP : modify_pair(c);
    case IB_USER_VERBS_CMD_CREATE_AH: return create_address(c);
    case IB_USER_VERBS_CMD_QUERY_DEVICE: return query_device(c, false);
    case IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE: return query_device(c, true);
    default: return EOPNOTSUPP;
  }
}

}  // namespace uverbs
