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

#include "transport/rdma/bnxt/abi.hpp"
#include "transport/rdma/ionic/abi.hpp"

namespace u = xio::rdma::uverbs;
namespace b = xio::rdma::bnxt;
namespace i = xio::rdma::ionic;

#define SAME_SIZE(MINE, THEIRS) static_assert(sizeof(MINE) == sizeof(THEIRS))
#define SAME_FIELD(MINE, FIELD, THEIRS, NAME)                      \
  static_assert(offsetof(MINE, FIELD) == offsetof(THEIRS, NAME) && \
                sizeof(static_cast<MINE*>(nullptr)->FIELD) == sizeof(static_cast<THEIRS*>(nullptr)->NAME))
#define SAME(MINE, THEIRS) static_assert(static_cast<unsigned long>(MINE) == static_cast<unsigned long>(THEIRS))

static_assert(RDMA_VERBS_IOCTL == u::k_ioctl);
SAME_SIZE(u::ioctl_header, ib_uverbs_ioctl_hdr);
SAME_FIELD(u::ioctl_header, driver, ib_uverbs_ioctl_hdr, driver_id);
SAME_SIZE(u::attribute, ib_uverbs_attr);
SAME(u::k_mandatory, UVERBS_ATTR_F_MANDATORY);
SAME(u::driver_bnxt, RDMA_DRIVER_BNXT_RE);
SAME(u::driver_ionic, RDMA_DRIVER_IONIC);
SAME(u::obj_events, UVERBS_OBJECT_ASYNC_EVENT);
SAME(u::events::open, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
SAME(u::events::file, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
SAME_SIZE(u::event, ib_uverbs_async_event_desc);
SAME_FIELD(u::event, about, ib_uverbs_async_event_desc, element);
SAME_FIELD(u::event, type, ib_uverbs_async_event_desc, event_type);
SAME(u::k_linux_abi, IONIC_ABI_VERSION);
SAME(u::k_linux_abi, BNXT_RE_ABI_VERSION);
SAME(u::obj_device, UVERBS_OBJECT_DEVICE);
SAME(u::obj_pd, UVERBS_OBJECT_PD);
SAME(u::obj_cq, UVERBS_OBJECT_CQ);
SAME(u::obj_qp, UVERBS_OBJECT_QP);
SAME(u::obj_mr, UVERBS_OBJECT_MR);
SAME(u::k_driver_in, UVERBS_ATTR_UHW_IN);
SAME(u::k_driver_out, UVERBS_ATTR_UHW_OUT);
SAME(u::k_driver_more, UVERBS_ID_DRIVER_NS_WITH_UHW);
SAME(u::device::invoke_write, UVERBS_METHOD_INVOKE_WRITE);
SAME(u::device::query_port, UVERBS_METHOD_QUERY_PORT);
SAME(u::device::get_context, UVERBS_METHOD_GET_CONTEXT);
SAME(u::device::query_gids, UVERBS_METHOD_QUERY_GID_TABLE);
SAME(u::device::core_in, UVERBS_ATTR_CORE_IN);
SAME(u::device::core_out, UVERBS_ATTR_CORE_OUT);
SAME(u::device::write_command, UVERBS_ATTR_WRITE_CMD);
SAME(u::device::port_number, UVERBS_ATTR_QUERY_PORT_PORT_NUM);
SAME(u::device::port_response, UVERBS_ATTR_QUERY_PORT_RESP);
SAME(u::device::vectors, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS);
SAME(u::device::core_support, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT);
SAME(u::device::entry_bytes, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
SAME(u::device::gid_flags, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS);
SAME(u::device::gid_entries, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
SAME(u::device::gid_count, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES);
SAME(u::cmd_query_device, IB_USER_VERBS_CMD_QUERY_DEVICE);
SAME(u::cmd_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD);
SAME(u::cmd_reg_mr, IB_USER_VERBS_CMD_REG_MR);
SAME(u::cmd_modify_qp, IB_USER_VERBS_CMD_MODIFY_QP);
SAME(u::cq::create, UVERBS_METHOD_CQ_CREATE);
SAME(u::cq::destroy, UVERBS_METHOD_CQ_DESTROY);
SAME(u::cq::handle, UVERBS_ATTR_CREATE_CQ_HANDLE);
SAME(u::cq::entries, UVERBS_ATTR_CREATE_CQ_CQE);
SAME(u::cq::user_handle, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
SAME(u::cq::vector, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR);
SAME(u::cq::entries_made, UVERBS_ATTR_CREATE_CQ_RESP_CQE);
SAME(u::cq::buffer, UVERBS_ATTR_CREATE_CQ_BUF_UMEM);
SAME(u::cq::destroyed, UVERBS_ATTR_DESTROY_CQ_HANDLE);
SAME(u::cq::destroy_response, UVERBS_ATTR_DESTROY_CQ_RESP);
SAME(u::qp::create, UVERBS_METHOD_QP_CREATE);
SAME(u::qp::destroy, UVERBS_METHOD_QP_DESTROY);
SAME(u::qp::handle, UVERBS_ATTR_CREATE_QP_HANDLE);
SAME(u::qp::pd, UVERBS_ATTR_CREATE_QP_PD_HANDLE);
SAME(u::qp::send_cq, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
SAME(u::qp::receive_cq, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);
SAME(u::qp::user_handle, UVERBS_ATTR_CREATE_QP_USER_HANDLE);
SAME(u::qp::capacity, UVERBS_ATTR_CREATE_QP_CAP);
SAME(u::qp::type, UVERBS_ATTR_CREATE_QP_TYPE);
SAME(u::qp::capacity_made, UVERBS_ATTR_CREATE_QP_RESP_CAP);
SAME(u::qp::number, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM);
SAME(u::qp::receive_buffer, UVERBS_ATTR_CREATE_QP_RQ_BUF_UMEM);
SAME(u::qp::send_buffer, UVERBS_ATTR_CREATE_QP_SQ_BUF_UMEM);
SAME(u::qp::destroyed, UVERBS_ATTR_DESTROY_QP_HANDLE);
SAME(u::qp::destroy_response, UVERBS_ATTR_DESTROY_QP_RESP);
SAME(u::qp::k_reliable, IB_UVERBS_QPT_RC);
SAME(u::mr::destroy, UVERBS_METHOD_MR_DESTROY);
SAME(u::mr::destroyed, UVERBS_ATTR_DESTROY_MR_HANDLE);
SAME(u::mr::register_dmabuf, UVERBS_METHOD_REG_DMABUF_MR);
SAME(u::mr::handle, UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
SAME(u::mr::pd, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE);
SAME(u::mr::offset, UVERBS_ATTR_REG_DMABUF_MR_OFFSET);
SAME(u::mr::length, UVERBS_ATTR_REG_DMABUF_MR_LENGTH);
SAME(u::mr::address, UVERBS_ATTR_REG_DMABUF_MR_IOVA);
SAME(u::mr::file, UVERBS_ATTR_REG_DMABUF_MR_FD);
SAME(u::mr::access, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS);
SAME(u::mr::lkey, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY);
SAME(u::mr::rkey, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY);
SAME_SIZE(u::buffer_description, ib_uverbs_buffer_desc);
SAME_FIELD(u::buffer_description, fd, ib_uverbs_buffer_desc, fd);
SAME_FIELD(u::buffer_description, address, ib_uverbs_buffer_desc, addr);
SAME_FIELD(u::buffer_description, length, ib_uverbs_buffer_desc, length);
SAME(0, IB_UVERBS_BUFFER_TYPE_DMABUF);
SAME(1, IB_UVERBS_BUFFER_TYPE_VA);
SAME_SIZE(u::queue_capacity, ib_uverbs_qp_cap);
SAME_FIELD(u::queue_capacity, send_spans, ib_uverbs_qp_cap, max_send_sge);
SAME_SIZE(u::cq_events, ib_uverbs_destroy_cq_resp);
SAME_SIZE(u::qp_events, ib_uverbs_destroy_qp_resp);
SAME_SIZE(u::alloc_pd, ib_uverbs_alloc_pd);
SAME_SIZE(u::alloc_pd_response, ib_uverbs_alloc_pd_resp);
SAME_SIZE(u::reg_mr, ib_uverbs_reg_mr);
SAME_FIELD(u::reg_mr, device_address, ib_uverbs_reg_mr, hca_va);
SAME_FIELD(u::reg_mr, access, ib_uverbs_reg_mr, access_flags);
SAME_SIZE(u::reg_mr_response, ib_uverbs_reg_mr_resp);
SAME(u::k_local_write, IB_UVERBS_ACCESS_LOCAL_WRITE);
SAME(u::k_remote_write, IB_UVERBS_ACCESS_REMOTE_WRITE);
SAME(u::k_remote_read, IB_UVERBS_ACCESS_REMOTE_READ);
SAME(u::k_remote_atomic, IB_UVERBS_ACCESS_REMOTE_ATOMIC);
SAME(u::k_relaxed, IB_UVERBS_ACCESS_RELAXED_ORDERING);
SAME_SIZE(u::qp_destination, ib_uverbs_qp_dest);
SAME_FIELD(u::qp_destination, source_gid, ib_uverbs_qp_dest, sgid_index);
SAME_FIELD(u::qp_destination, is_global, ib_uverbs_qp_dest, is_global);
SAME_SIZE(u::modify_qp, ib_uverbs_modify_qp);
SAME_FIELD(u::modify_qp, handle, ib_uverbs_modify_qp, qp_handle);
SAME_FIELD(u::modify_qp, mask, ib_uverbs_modify_qp, attr_mask);
SAME_FIELD(u::modify_qp, receive_psn, ib_uverbs_modify_qp, rq_psn);
SAME_FIELD(u::modify_qp, send_psn, ib_uverbs_modify_qp, sq_psn);
SAME_FIELD(u::modify_qp, remote_number, ib_uverbs_modify_qp, dest_qp_num);
SAME_FIELD(u::modify_qp, access, ib_uverbs_modify_qp, qp_access_flags);
SAME_FIELD(u::modify_qp, pkey_index, ib_uverbs_modify_qp, pkey_index);
SAME_FIELD(u::modify_qp, state, ib_uverbs_modify_qp, qp_state);
SAME_FIELD(u::modify_qp, path_mtu, ib_uverbs_modify_qp, path_mtu);
SAME_FIELD(u::modify_qp, initiator_depth, ib_uverbs_modify_qp, max_rd_atomic);
SAME_FIELD(u::modify_qp, responder_depth, ib_uverbs_modify_qp, max_dest_rd_atomic);
SAME_FIELD(u::modify_qp, rnr_timer, ib_uverbs_modify_qp, min_rnr_timer);
SAME_FIELD(u::modify_qp, port, ib_uverbs_modify_qp, port_num);
SAME_FIELD(u::modify_qp, timeout, ib_uverbs_modify_qp, timeout);
SAME_FIELD(u::modify_qp, retries, ib_uverbs_modify_qp, retry_cnt);
SAME_FIELD(u::modify_qp, rnr_retries, ib_uverbs_modify_qp, rnr_retry);
SAME_SIZE(u::query_device_response, ib_uverbs_query_device_resp);
SAME_FIELD(u::query_device_response, send_requests, ib_uverbs_query_device_resp, max_qp_wr);
SAME_FIELD(u::query_device_response, spans, ib_uverbs_query_device_resp, max_sge);
SAME_FIELD(u::query_device_response, cq_entries, ib_uverbs_query_device_resp, max_cqe);
SAME_FIELD(u::query_device_response, responder_depth, ib_uverbs_query_device_resp, max_qp_rd_atom);
SAME_FIELD(u::query_device_response, initiator_depth, ib_uverbs_query_device_resp, max_qp_init_rd_atom);
SAME_FIELD(u::query_device_response, atomics, ib_uverbs_query_device_resp, atomic_cap);
SAME_FIELD(u::query_device_response, ports, ib_uverbs_query_device_resp, phys_port_cnt);
SAME_SIZE(u::query_port_response, ib_uverbs_query_port_resp_ex);
SAME_FIELD(u::query_port_response, most_message, ib_uverbs_query_port_resp_ex, legacy_resp.max_msg_sz);
SAME_FIELD(u::query_port_response, gids, ib_uverbs_query_port_resp_ex, legacy_resp.gid_tbl_len);
SAME_FIELD(u::query_port_response, pkeys, ib_uverbs_query_port_resp_ex, legacy_resp.pkey_tbl_len);
SAME_FIELD(u::query_port_response, state, ib_uverbs_query_port_resp_ex, legacy_resp.state);
SAME_FIELD(u::query_port_response, active_mtu, ib_uverbs_query_port_resp_ex, legacy_resp.active_mtu);
SAME_FIELD(u::query_port_response, width, ib_uverbs_query_port_resp_ex, legacy_resp.active_width);
SAME_FIELD(u::query_port_response, speed, ib_uverbs_query_port_resp_ex, legacy_resp.active_speed);
SAME_FIELD(u::query_port_response, link, ib_uverbs_query_port_resp_ex, legacy_resp.link_layer);
SAME_SIZE(u::gid_entry, ib_uverbs_gid_entry);
SAME_FIELD(u::gid_entry, index, ib_uverbs_gid_entry, gid_index);
SAME_FIELD(u::gid_entry, type, ib_uverbs_gid_entry, gid_type);

// --- bnxt_re -----------------------------------------------------------------------------------------

SAME_SIZE(b::context_request, bnxt_re_uctx_req);
SAME(b::k_any_size, BNXT_RE_COMP_MASK_REQ_UCNTX_POW2_SUPPORT);
SAME(b::k_variable_entries, BNXT_RE_COMP_MASK_REQ_UCNTX_VAR_WQE_SUPPORT);
SAME_SIZE(b::context_response, bnxt_re_uctx_resp);
SAME_FIELD(b::context_response, mask, bnxt_re_uctx_resp, comp_mask);
SAME_FIELD(b::context_response, mode, bnxt_re_uctx_resp, mode);
SAME(b::k_has_mode, BNXT_RE_UCNTX_CMASK_HAVE_MODE);
SAME(b::k_msn_table, BNXT_RE_UCNTX_CMASK_MSN_TABLE_ENABLED);
SAME(b::k_mode_variable, BNXT_QPLIB_WQE_MODE_VARIABLE);
SAME_SIZE(b::pd_response, bnxt_re_pd_resp);
SAME_FIELD(b::pd_response, offset, bnxt_re_pd_resp, dbr);
SAME_SIZE(b::cq_request, bnxt_re_cq_req);
SAME_FIELD(b::cq_request, mask, bnxt_re_cq_req, comp_mask);
SAME(b::k_cq_of_given_size, BNXT_RE_CQ_FIXED_NUM_CQE_ENABLE);
SAME_SIZE(b::cq_response, bnxt_re_cq_resp);
SAME_SIZE(b::qp_request, bnxt_re_qp_req);
SAME_FIELD(b::qp_request, handle, bnxt_re_qp_req, qp_handle);
SAME_FIELD(b::qp_request, mask, bnxt_re_qp_req, comp_mask);
SAME_FIELD(b::qp_request, send_slots, bnxt_re_qp_req, sq_slots);
SAME_FIELD(b::qp_request, sequence_entries, bnxt_re_qp_req, sq_npsn);
SAME(b::k_qp_of_given_size, BNXT_RE_QP_REQ_MASK_FIXED_QUE_ATTR);
SAME_SIZE(b::qp_response, bnxt_re_qp_resp);
SAME(b::k_page_object, BNXT_RE_OBJECT_DBR);
SAME(b::page_alloc, BNXT_RE_METHOD_DBR_ALLOC);
SAME(b::page_free, BNXT_RE_METHOD_DBR_FREE);
SAME(b::page_handle, BNXT_RE_ALLOC_DBR_HANDLE);
SAME(b::page_region, BNXT_RE_ALLOC_DBR_ATTR);
SAME(b::page_offset, BNXT_RE_ALLOC_DBR_OFFSET);
SAME(b::page_handle, BNXT_RE_FREE_DBR_HANDLE);
SAME_SIZE(b::page_description, bnxt_re_db_region);
SAME(b::k_qp_page, BNXT_RE_CREATE_QP_ATTR_DBR_HANDLE);

// --- ionic -------------------------------------------------------------------------------------------

SAME_SIZE(i::context_request, ionic_ctx_req);
SAME_FIELD(i::context_response, doorbell_offset, ionic_ctx_resp, dbell_offset);
SAME_FIELD(i::context_response, version, ionic_ctx_resp, version);
SAME_FIELD(i::context_response, opcodes, ionic_ctx_resp, qp_opcodes);
SAME_FIELD(i::context_response, sq_type, ionic_ctx_resp, sq_qtype);
SAME_FIELD(i::context_response, cq_type, ionic_ctx_resp, cq_qtype);
SAME_FIELD(i::context_response, pipelines, ionic_ctx_resp, udma_count);
SAME_SIZE(i::queue_description, ionic_qdesc);
SAME_FIELD(i::queue_description, mask, ionic_qdesc, mask);
SAME_FIELD(i::queue_description, stride_log2, ionic_qdesc, stride_log2);
SAME_SIZE(i::cq_request, ionic_cq_req);
SAME_FIELD(i::cq_request, pipelines, ionic_cq_req, udma_mask);
SAME_SIZE(i::cq_response, ionic_cq_resp);
SAME_SIZE(i::qp_request, ionic_qp_req);
SAME_FIELD(i::qp_request, pipelines, ionic_qp_req, udma_mask);
SAME_SIZE(i::qp_response, ionic_qp_resp);
SAME_FIELD(i::qp_response, pipeline, ionic_qp_resp, udma_idx);

int main() { return 0; }
