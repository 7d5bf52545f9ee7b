// SPDX-License-Identifier: MIT
// libxio's own copies of the kernel's structures and numbers against the kernel's headers: it compiles where they are
// alike. tests/uverbs/abi.sh gives it a folder with rdma/*.h of Linux 7.2 or newer.
#include <rdma/bnxt_re-abi.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ionic-abi.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstddef>

#include "../each.hpp"
#include "transport/rdma/bnxt/abi.hpp"
#include "transport/rdma/ionic/abi.hpp"

namespace u = xio::rdma::uverbs;
namespace b = xio::rdma::bnxt;
namespace i = xio::rdma::ionic;

#define SAME(MINE, THEIRS) static_assert(static_cast<unsigned long>(MINE) == static_cast<unsigned long>(THEIRS), #MINE)
#define SAME_SIZE(MINE, THEIRS) static_assert(sizeof(MINE) == sizeof(THEIRS), #MINE)
#define SAME_FIELD(FIELD, NAME)                                                                                \
  static_assert(offsetof(mine, FIELD) == offsetof(theirs, NAME) &&                                             \
                    sizeof(static_cast<mine*>(nullptr)->FIELD) == sizeof(static_cast<theirs*>(nullptr)->NAME), \
                #FIELD)
// Two structures' fields, each with its name here and there.
#define SAME_FIELDS(MINE, THEIRS, ...) \
  {                                    \
    using mine = MINE;                 \
    using theirs = THEIRS;             \
    XIO_EACH(SAME_FIELD, __VA_ARGS__)  \
  }
#define SAME_STRUCT(MINE, THEIRS, ...) \
  SAME_SIZE(MINE, THEIRS);             \
  SAME_FIELDS(MINE, THEIRS, __VA_ARGS__)

int main() {
  SAME(RDMA_VERBS_IOCTL, u::k_ioctl);
  XIO_EACH(
      SAME, (u::k_mandatory, UVERBS_ATTR_F_MANDATORY), (u::driver_bnxt, RDMA_DRIVER_BNXT_RE),
      (u::driver_ionic, RDMA_DRIVER_IONIC), (u::obj_events, UVERBS_OBJECT_ASYNC_EVENT),
      (u::events::open, UVERBS_METHOD_ASYNC_EVENT_ALLOC), (u::events::file, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE),
      (u::k_linux_abi, IONIC_ABI_VERSION), (u::k_linux_abi, BNXT_RE_ABI_VERSION), (u::obj_device, UVERBS_OBJECT_DEVICE),
      (u::obj_pd, UVERBS_OBJECT_PD), (u::obj_cq, UVERBS_OBJECT_CQ), (u::obj_qp, UVERBS_OBJECT_QP),
      (u::obj_mr, UVERBS_OBJECT_MR), (u::k_driver_in, UVERBS_ATTR_UHW_IN), (u::k_driver_out, UVERBS_ATTR_UHW_OUT),
      (u::k_driver_more, UVERBS_ID_DRIVER_NS_WITH_UHW), (u::device::invoke_write, UVERBS_METHOD_INVOKE_WRITE),
      (u::device::query_port, UVERBS_METHOD_QUERY_PORT), (u::device::get_context, UVERBS_METHOD_GET_CONTEXT),
      (u::device::query_gids, UVERBS_METHOD_QUERY_GID_TABLE), (u::device::core_in, UVERBS_ATTR_CORE_IN),
      (u::device::core_out, UVERBS_ATTR_CORE_OUT), (u::device::write_command, UVERBS_ATTR_WRITE_CMD),
      (u::device::port_number, UVERBS_ATTR_QUERY_PORT_PORT_NUM),
      (u::device::port_response, UVERBS_ATTR_QUERY_PORT_RESP),
      (u::device::vectors, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS),
      (u::device::core_support, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT),
      (u::device::entry_bytes, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE),
      (u::device::gid_flags, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS),
      (u::device::gid_entries, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES),
      (u::device::gid_count, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES),
      (u::cmd_query_device, IB_USER_VERBS_CMD_QUERY_DEVICE), (u::cmd_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD),
      (u::cmd_reg_mr, IB_USER_VERBS_CMD_REG_MR), (u::cmd_modify_qp, IB_USER_VERBS_CMD_MODIFY_QP),
      (u::cq::create, UVERBS_METHOD_CQ_CREATE), (u::cq::destroy, UVERBS_METHOD_CQ_DESTROY),
      (u::cq::handle, UVERBS_ATTR_CREATE_CQ_HANDLE), (u::cq::entries, UVERBS_ATTR_CREATE_CQ_CQE),
      (u::cq::user_handle, UVERBS_ATTR_CREATE_CQ_USER_HANDLE), (u::cq::vector, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR),
      (u::cq::entries_made, UVERBS_ATTR_CREATE_CQ_RESP_CQE), (u::cq::buffer, UVERBS_ATTR_CREATE_CQ_BUF_UMEM),
      (u::cq::destroyed, UVERBS_ATTR_DESTROY_CQ_HANDLE), (u::cq::destroy_response, UVERBS_ATTR_DESTROY_CQ_RESP),
      (u::qp::create, UVERBS_METHOD_QP_CREATE), (u::qp::destroy, UVERBS_METHOD_QP_DESTROY),
      (u::qp::handle, UVERBS_ATTR_CREATE_QP_HANDLE), (u::qp::pd, UVERBS_ATTR_CREATE_QP_PD_HANDLE),
      (u::qp::send_cq, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE), (u::qp::receive_cq, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE),
      (u::qp::user_handle, UVERBS_ATTR_CREATE_QP_USER_HANDLE), (u::qp::capacity, UVERBS_ATTR_CREATE_QP_CAP),
      (u::qp::type, UVERBS_ATTR_CREATE_QP_TYPE), (u::qp::capacity_made, UVERBS_ATTR_CREATE_QP_RESP_CAP),
      (u::qp::number, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM), (u::qp::receive_buffer, UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM),
      (u::qp::send_buffer, UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM), (u::qp::destroyed, UVERBS_ATTR_DESTROY_QP_HANDLE),
      (u::qp::destroy_response, UVERBS_ATTR_DESTROY_QP_RESP), (u::qp::k_reliable, IB_UVERBS_QPT_RC),
      (u::mr::destroy, UVERBS_METHOD_MR_DESTROY), (u::mr::destroyed, UVERBS_ATTR_DESTROY_MR_HANDLE),
      (u::mr::register_dmabuf, UVERBS_METHOD_REG_DMABUF_MR), (u::mr::handle, UVERBS_ATTR_REG_DMABUF_MR_HANDLE),
      (u::mr::pd, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE), (u::mr::offset, UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
      (u::mr::length, UVERBS_ATTR_REG_DMABUF_MR_LENGTH), (u::mr::address, UVERBS_ATTR_REG_DMABUF_MR_IOVA),
      (u::mr::file, UVERBS_ATTR_REG_DMABUF_MR_FD), (u::mr::access, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
      (u::mr::lkey, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY), (u::mr::rkey, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY),
      (0, IB_UVERBS_BUFFER_TYPE_DMABUF), (1, IB_UVERBS_BUFFER_TYPE_VA),
      (u::k_local_write, IB_UVERBS_ACCESS_LOCAL_WRITE), (u::k_remote_write, IB_UVERBS_ACCESS_REMOTE_WRITE),
      (u::k_remote_read, IB_UVERBS_ACCESS_REMOTE_READ), (u::k_remote_atomic, IB_UVERBS_ACCESS_REMOTE_ATOMIC),
      (u::k_relaxed, IB_UVERBS_ACCESS_RELAXED_ORDERING));
  XIO_EACH(SAME_SIZE, (u::attribute, ib_uverbs_attr), (u::cq_events, ib_uverbs_destroy_cq_resp),
           (u::qp_events, ib_uverbs_destroy_qp_resp), (u::alloc_pd, ib_uverbs_alloc_pd),
           (u::alloc_pd_response, ib_uverbs_alloc_pd_resp), (u::reg_mr_response, ib_uverbs_reg_mr_resp));
  SAME_STRUCT(u::ioctl_header, ib_uverbs_ioctl_hdr, (driver, driver_id));
  SAME_STRUCT(u::event, ib_uverbs_async_event_desc, (about, element), (type, event_type));
  SAME_STRUCT(u::buffer_description, ib_uverbs_buffer_desc, (fd, fd), (address, addr), (length, length));
  SAME_STRUCT(u::queue_capacity, ib_uverbs_qp_cap, (send_spans, max_send_sge));
  SAME_STRUCT(u::reg_mr, ib_uverbs_reg_mr, (device_address, hca_va), (access, access_flags));
  SAME_STRUCT(u::qp_destination, ib_uverbs_qp_dest, (source_gid, sgid_index), (is_global, is_global));
  SAME_STRUCT(u::modify_qp, ib_uverbs_modify_qp, (handle, qp_handle), (mask, attr_mask), (receive_psn, rq_psn),
              (send_psn, sq_psn), (remote_number, dest_qp_num), (access, qp_access_flags), (pkey_index, pkey_index),
              (state, qp_state), (path_mtu, path_mtu), (initiator_depth, max_rd_atomic),
              (responder_depth, max_dest_rd_atomic), (rnr_timer, min_rnr_timer), (port, port_num), (timeout, timeout),
              (retries, retry_cnt), (rnr_retries, rnr_retry));
  SAME_STRUCT(u::query_device_response, ib_uverbs_query_device_resp, (send_requests, max_qp_wr), (spans, max_sge),
              (cq_entries, max_cqe), (responder_depth, max_qp_rd_atom), (initiator_depth, max_qp_init_rd_atom),
              (atomics, atomic_cap), (ports, phys_port_cnt));
  SAME_STRUCT(u::query_port_response, ib_uverbs_query_port_resp_ex, (most_message, legacy_resp.max_msg_sz),
              (gids, legacy_resp.gid_tbl_len), (pkeys, legacy_resp.pkey_tbl_len), (state, legacy_resp.state),
              (active_mtu, legacy_resp.active_mtu), (width, legacy_resp.active_width),
              (speed, legacy_resp.active_speed), (link, legacy_resp.link_layer));
  SAME_STRUCT(u::gid_entry, ib_uverbs_gid_entry, (index, gid_index), (type, gid_type));

  // --- bnxt_re -----------------------------------------------------------------------------------------

  XIO_EACH(SAME, (b::k_any_size, BNXT_RE_COMP_MASK_REQ_UCNTX_POW2_SUPPORT),
           (b::k_variable_entries, BNXT_RE_COMP_MASK_REQ_UCNTX_VAR_WQE_SUPPORT),
           (b::k_has_mode, BNXT_RE_UCNTX_CMASK_HAVE_MODE), (b::k_msn_table, BNXT_RE_UCNTX_CMASK_MSN_TABLE_ENABLED),
           (b::k_mode_variable, BNXT_QPLIB_WQE_MODE_VARIABLE), (b::k_cq_of_given_size, BNXT_RE_CQ_FIXED_NUM_CQE_ENABLE),
           (b::k_qp_of_given_size, BNXT_RE_QP_REQ_MASK_FIXED_QUE_ATTR), (b::k_page_object, BNXT_RE_OBJECT_DBR),
           (b::page_alloc, BNXT_RE_METHOD_DBR_ALLOC), (b::page_free, BNXT_RE_METHOD_DBR_FREE),
           (b::page_handle, BNXT_RE_ALLOC_DBR_HANDLE), (b::page_region, BNXT_RE_ALLOC_DBR_ATTR),
           (b::page_offset, BNXT_RE_ALLOC_DBR_OFFSET), (b::page_handle, BNXT_RE_FREE_DBR_HANDLE),
           (b::k_qp_page, BNXT_RE_CREATE_QP_ATTR_DBR_HANDLE));
  XIO_EACH(SAME_SIZE, (b::context_request, bnxt_re_uctx_req), (b::cq_response, bnxt_re_cq_resp),
           (b::qp_response, bnxt_re_qp_resp), (b::page_description, bnxt_re_db_region));
  SAME_STRUCT(b::context_response, bnxt_re_uctx_resp, (mask, comp_mask), (mode, mode));
  SAME_STRUCT(b::pd_response, bnxt_re_pd_resp, (offset, dbr));
  SAME_STRUCT(b::cq_request, bnxt_re_cq_req, (mask, comp_mask));
  SAME_STRUCT(b::qp_request, bnxt_re_qp_req, (handle, qp_handle), (mask, comp_mask), (send_slots, sq_slots),
              (sequence_entries, sq_npsn));

  // --- ionic -------------------------------------------------------------------------------------------

  XIO_EACH(SAME_SIZE, (i::context_request, ionic_ctx_req), (i::cq_response, ionic_cq_resp));
  SAME_FIELDS(i::context_response, ionic_ctx_resp, (doorbell_offset, dbell_offset), (version, version),
              (opcodes, qp_opcodes), (sq_type, sq_qtype), (cq_type, cq_qtype), (pipelines, udma_count));
  SAME_STRUCT(i::queue_description, ionic_qdesc, (mask, mask), (stride_log2, stride_log2));
  SAME_STRUCT(i::cq_request, ionic_cq_req, (pipelines, udma_mask));
  SAME_STRUCT(i::qp_request, ionic_qp_req, (pipelines, udma_mask));
  SAME_STRUCT(i::qp_response, ionic_qp_resp, (pipeline, udma_idx));
  return 0;
}
