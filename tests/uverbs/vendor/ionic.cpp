// SPDX-License-Identifier: MIT
// A stand-in for libionic of AMD's drivers: verbs of parent domains and its direct-verbs calls over the simulated
// kernel. The rules are those that its users keep (MORI, rocSHMEM); its structures are in
// transport/rdma/ionic/library.hpp.
#include "transport/rdma/ionic/library.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "transport/rdma/ionic/abi.hpp"
#include "uverbs/vendor/verbs.hpp"

using namespace vendor;
namespace abi = xio::rdma::ionic;
namespace dv = abi::dv;

namespace {

constexpr std::size_t k_page = 4096, k_wqe = 64, k_cqe = 32;
constexpr std::uint32_t k_most_sends = 32767;

struct parent : ibv_pd, counted {
  ibv_parent_domain_init_attr how;
  std::uint8_t pipelines = 3;
  bool send_off = false, receive_off = false;
};
struct cq : ibv_cq_ex, counted {
  dv::ring rings[2];
  std::uint8_t pipelines;
};
struct qp : ibv_qp, counted {
  dv::pair_rings rings;
  std::uint8_t pipeline;
};

// Memory of the domain's user for a ring, which is cleared. False with errno.
bool place(parent* p, dv::memory_of what, std::uint32_t least, std::size_t entry, dv::ring* to) {
  const std::uint32_t entries = std::max<std::uint32_t>(std::bit_ceil(least), k_page / entry);
  const std::size_t bytes = entries * entry;
  void* at = IBV_ALLOCATOR_USE_DEFAULT;
  if ((p->how.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0)
    at = p->how.alloc(p, p->how.pd_context, bytes, k_page, dv::k_driver << 32 | what);
  if (at == IBV_ALLOCATOR_USE_DEFAULT) at = std::memset(std::aligned_alloc(k_page, bytes), 0, bytes);
  if (!check(rule::alloc_given, at != nullptr) ||
      !check(rule::alloc_place, reinterpret_cast<std::uintptr_t>(at) % k_page == 0 && is_mapped(at, bytes)))
    return false;
  const auto* begin = static_cast<unsigned char*>(at);
  if (!check(rule::alloc_cleared, std::all_of(begin, begin + bytes, [](unsigned char c) { return c == 0; })))
    return false;
  *to = {at,
         bytes,
         0,
         static_cast<std::uint16_t>(entries - 1),
         static_cast<std::uint8_t>(std::countr_zero(entries)),
         static_cast<std::uint8_t>(std::countr_zero(entry)),
         {}};
  return true;
}
abi::queue_description describe(const dv::ring& r) {
  return {reinterpret_cast<std::uint64_t>(r.at), static_cast<std::uint32_t>(r.bytes), r.mask, r.depth_log2,
          r.stride_log2};
}

ibv_pd* alloc_parent(ibv_context* c, ibv_parent_domain_init_attr* how) {
  return keep(new parent{{c, how->pd->handle}, {}, *how});
}

ibv_cq_ex* create_cq(ibv_context* c, ibv_cq_init_attr_ex* a) {
  parent* p = live<parent>(a->parent_domain);
  if (!check(rule::parent_live, a->comp_mask == IBV_CQ_INIT_ATTR_MASK_PD && p != nullptr) ||
      !check(rule::ring_entries, a->cqe != 0 && a->cqe + abi::k_cq_spare <= 0xffff))
    return nullptr;
  abi::cq_request wanted{};
  abi::cq_response made{};
  dv::ring rings[2] = {};
  for (unsigned i = 0; i < 2; ++i) {
    if ((p->pipelines >> i & 1) == 0) continue;
    if (!place(p, dv::of_cq, a->cqe + abi::k_cq_spare, k_cqe, &rings[i])) return nullptr;
    wanted.queues[i] = describe(rings[i]);
  }
  wanted.pipelines = p->pipelines;
  std::uint32_t given = 0;
  u::call call(u::obj_cq, u::cq::create);
  call.make(u::cq::handle).in(u::cq::entries, a->cqe).in(u::cq::user_handle, std::uint64_t{0});
  call.in(u::cq::vector, std::uint32_t{0}).out(u::cq::entries_made, &given);
  call.in(u::k_driver_in, &wanted, sizeof wanted).out(u::k_driver_out, &made);
  if (run(c, call) != 0) return nullptr;
  auto* q = new cq{};
  q->context = c;
  q->handle = call.made(u::cq::handle);
  q->pipelines = p->pipelines;
  for (unsigned i = 0; i < 2; ++i) {
    q->rings[i] = rings[i];
    q->rings[i].doorbell = std::uint64_t{made.numbers[i]} << dv::k_number_shift;
  }
  q->uses({p});
  return keep(q);
}

}  // namespace

void vendor::add_extended(verbs_context& v) {
  v.alloc_parent_domain = alloc_parent;
  v.create_cq_ex = create_cq;
}
bool vendor::end_parent(ibv_pd* pd, int* err) {
  parent* p = live<parent>(pd);
  if (p != nullptr) *err = check(rule::parent_unused, p->users == 0) ? forget(p) : errno;
  return p != nullptr;
}

VENDOR_SHOWN ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* a) {
  parent* p = live<parent>(pd);
  cq *send = live<cq>(a->send_cq), *receive = live<cq>(a->recv_cq);
  if (!check(rule::parent_live, p != nullptr && send != nullptr && receive != nullptr) ||
      !check(rule::controller_off, p->send_off && p->receive_off) ||
      !check(rule::ring_entries, a->cap.max_send_wr != 0 && a->cap.max_send_wr <= k_most_sends))
    return nullptr;
  dv::pair_rings rings{};
  // A library may want more than rings, of its own if the user has none.
  void* more = p->how.alloc == nullptr
                   ? p
                   : p->how.alloc(p, p->how.pd_context, k_page, k_page, dv::k_driver << 32 | dv::of_reordering);
  if (!check(rule::alloc_given, more != nullptr)) return nullptr;
  if (!place(p, dv::of_sends, a->cap.max_send_wr, k_wqe, &rings.sends) ||
      !place(p, dv::of_receives, a->cap.max_recv_wr, k_wqe, &rings.receives))
    return nullptr;
  abi::qp_request wanted{};
  abi::qp_response made{};
  wanted.sends = describe(rings.sends);
  wanted.receives = describe(rings.receives);
  wanted.pipelines = p->pipelines;
  const u::queue_capacity room{a->cap.max_send_wr, a->cap.max_recv_wr, a->cap.max_send_sge, a->cap.max_recv_sge,
                               a->cap.max_inline_data};
  auto* q = new qp{};
  u::call call(u::obj_qp, u::qp::create);
  call.in(u::k_driver_in, &wanted, sizeof wanted).out(u::k_driver_out, &made);
  if (create_qp(call, q, pd, a->send_cq, a->recv_cq, room) != 0) return delete q, nullptr;
  q->pipeline = made.pipeline;
  q->rings = rings;
  q->rings.sends.doorbell = q->rings.receives.doorbell = std::uint64_t{q->qp_num} << dv::k_number_shift;
  q->uses({send, receive, p});
  return keep(q);
}
VENDOR_SHOWN int ibv_destroy_qp(ibv_qp* handle) {
  qp* q = live<qp>(handle);
  if (!check(rule::ionic_object, q != nullptr)) return errno;
  return destroy(q->context, u::obj_qp, q->handle) == 0 ? forget(q) : errno;
}
VENDOR_SHOWN int ibv_destroy_cq(ibv_cq* handle) {
  cq* q = live<cq>(handle);
  if (!check(rule::ionic_object, q != nullptr) || !check(rule::cq_unused, q->users == 0)) return errno;
  return destroy(q->context, u::obj_cq, q->handle) == 0 ? forget(q) : errno;
}

VENDOR_SHOWN int ionic_dv_get_ctx(dv::context_facts* to, ibv_context* c) {
  if (!check(rule::ionic_object, is_context(c))) return errno;
  context* mine = context_of(c);
  if (mine->page == nullptr) mine->page = map_page(c, 0);
  if (mine->page == nullptr) return errno;
  abi::context_response r{};
  std::memcpy(&r, mine->driver, sizeof r);
  *to = {mine->page, static_cast<std::uint64_t*>(mine->page) + r.doorbell_offset / 8, r.sq_type, r.rq_type, r.cq_type,
         {}};
  return 0;
}
VENDOR_SHOWN int ionic_dv_get_cq(dv::ring* to, ibv_cq* handle, std::uint8_t pipeline) {
  const cq* q = live<cq>(handle);
  if (!check(rule::ionic_object, q != nullptr) || !check(rule::ionic_pipeline, pipeline < 2)) return errno;
  *to = q->rings[pipeline];
  return 0;
}
VENDOR_SHOWN int ionic_dv_get_qp(dv::pair_rings* to, ibv_qp* handle) {
  const qp* q = live<qp>(handle);
  if (!check(rule::ionic_object, q != nullptr)) return errno;
  *to = q->rings;
  return 0;
}
VENDOR_SHOWN std::uint8_t ionic_dv_qp_get_udma_idx(ibv_qp* q) { return live<qp>(q)->pipeline; }

namespace {
int set_controller(ibv_pd* pd, bool parent::*off, bool any) {
  parent* p = live<parent>(pd);
  if (!check(rule::ionic_object, p != nullptr)) return errno;
  p->*off = !any;
  return 0;
}
}  // namespace
VENDOR_SHOWN int ionic_dv_pd_set_sqcmb(ibv_pd* pd, bool on, bool express, bool require) {
  return set_controller(pd, &parent::send_off, on || express || require);
}
VENDOR_SHOWN int ionic_dv_pd_set_rqcmb(ibv_pd* pd, bool on, bool express, bool require) {
  return set_controller(pd, &parent::receive_off, on || express || require);
}
VENDOR_SHOWN int ionic_dv_pd_set_udma_mask(ibv_pd* pd, std::uint8_t mask) {
  parent* p = live<parent>(pd);
  if (!check(rule::ionic_object, p != nullptr) || !check(rule::ionic_pipeline, mask != 0 && mask < 4)) return errno;
  p->pipelines = mask;
  return 0;
}
