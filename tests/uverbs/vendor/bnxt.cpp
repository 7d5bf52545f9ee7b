// SPDX-License-Identifier: MIT
// A stand-in for Broadcom's libbnxt_re: its direct-verbs calls over the simulated kernel, and what they refuse. The
// rules are those that its users keep (MORI, rocSHMEM); its structures are in transport/rdma/bnxt/library.hpp.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "transport/rdma/bnxt/abi.hpp"
#include "transport/rdma/bnxt/library.hpp"
#include "uverbs/vendor/verbs.hpp"

using namespace vendor;
namespace abi = xio::rdma::bnxt;
namespace dv = abi::dv;

namespace {

constexpr std::uint32_t k_page = 4096, k_slots = 8, k_entry = 128, k_psn = 8, k_cqe = 32, k_most_cqes = 1u << 17;
constexpr std::uint32_t k_most_inline = 96, k_most_spans = 6;

struct umem : dv::umem_attr, counted {};
struct page : dv::region, counted {
  ibv_context* context;
  std::uint32_t object;
};
struct cq : ibv_cq, counted {
  std::uint32_t number;
};
struct qp : ibv_qp, counted {};

std::uint32_t whole_pages(std::uint32_t bytes) { return (bytes + k_page - 1) / k_page * k_page; }

u::buffer_description describe(const umem& m, std::uint64_t offset, std::uint64_t bytes) {
  return {m.mask != 0 ? 0u : 1u, std::max(m.file, 0), 0, 0, reinterpret_cast<std::uint64_t>(m.address) + offset, bytes};
}

// By the rule that MORI follows; bnxt_re_dv_qp_mem_alloc gives the same for such a request.
bool check_sizes(const dv::qp_attr& a) {
  const std::uint32_t slots = a.sends * k_slots, table = std::bit_ceil(std::max(slots, 2u)) / 2;
  return check(rule::qp_kind, a.type == IBV_QPT_RC && a.mask == 0 && a.handle == 0 && a.shared_receives == nullptr) &&
         check(rule::qp_send_slots, std::has_single_bit(a.sends) && a.sends >= 256 && a.send_slots == slots) &&
         check(rule::qp_table, a.msn_entries == table && a.msn_bytes == k_psn) &&
         check(rule::qp_send_bytes, a.send_bytes == whole_pages(slots * 16 + table * k_psn)) &&
         check(rule::qp_receive, a.receives != 0 && a.receive_slots == a.receives * k_slots &&
                                     a.receive_bytes == whole_pages(a.receive_slots * 16)) &&
         check(rule::qp_entry, a.send_entry_bytes == k_entry && a.receive_entry_bytes == k_entry &&
                                   a.send_spans <= k_most_spans && a.receive_spans <= k_most_spans &&
                                   a.inline_bytes <= k_most_inline);
}

}  // namespace

bool vendor::is_direct(const ibv_qp* q) { return live<qp>(q) != nullptr; }

VENDOR_SHOWN void* bnxt_re_dv_umem_reg(ibv_context*, dv::umem_attr* a) {
  const bool file = (a->mask & dv::k_umem_file) != 0;
  if (!check(rule::umem_bytes, a->bytes != 0) || !check(rule::umem_mask, (a->mask & ~dv::k_umem_file) == 0) ||
      !check(rule::umem_file, !file || a->file >= 0) ||
      !check(rule::umem_mapped, file || is_mapped(a->address, a->bytes)) ||
      !check(rule::umem_page, reinterpret_cast<std::uint64_t>(a->address) % k_page == 0))
    return nullptr;
  return keep(new umem{*a, {}});
}
VENDOR_SHOWN int bnxt_re_dv_umem_dereg(void* handle) {
  umem* m = live<umem>(handle);
  return check(rule::umem_live, m != nullptr) && check(rule::umem_unused, m->users == 0) ? forget(m) : errno;
}

VENDOR_SHOWN ibv_cq* bnxt_re_dv_create_cq(ibv_context* c, dv::cq_attr* a) {
  umem* m = live<umem>(a->umem);
  const std::uint64_t bytes = std::uint64_t{a->entries} * k_cqe;
  if (!check(rule::umem_live, m != nullptr) || !check(rule::cq_handle, a->handle == 0) ||
      !check(rule::cq_entries, a->entries > 1 && a->entries <= k_most_cqes) ||
      !check(rule::cq_room, a->offset <= m->bytes && bytes <= m->bytes - a->offset))
    return nullptr;
  const abi::cq_request wanted{0, 0, abi::k_cq_of_given_size};
  abi::cq_response made{};
  std::uint32_t given = 0;
  const u::buffer_description memory = describe(*m, a->offset, bytes);
  u::call call(u::obj_cq, u::cq::create);
  call.make(u::cq::handle).in(u::cq::entries, a->entries).in(u::cq::user_handle, std::uint64_t{0});
  call.in(u::cq::vector, std::uint32_t{0}).out(u::cq::entries_made, &given).in(u::cq::buffer, memory);
  call.in(u::k_driver_in, &wanted, sizeof wanted).out(u::k_driver_out, &made);
  if (run(c, call) != 0) return nullptr;
  auto* q = new cq{};
  q->context = c;
  q->handle = call.made(u::cq::handle);
  q->number = made.number;
  q->uses({m});
  return keep(q);
}
VENDOR_SHOWN int bnxt_re_dv_destroy_cq(ibv_cq* handle) {
  cq* q = live<cq>(handle);
  if (!check(rule::cq_live, q != nullptr) || !check(rule::cq_unused, q->users == 0)) return errno;
  return destroy(q->context, u::obj_cq, q->handle) == 0 ? forget(q) : errno;
}

VENDOR_SHOWN int bnxt_re_dv_get_default_db_region(ibv_context* c, dv::region* to) {
  context* mine = context_of(c);
  if (mine->page == nullptr) mine->page = map_page(c, mine->page_offset);
  *to = {0, 0, 0, mine->page};
  return mine->page != nullptr ? 0 : errno;
}
VENDOR_SHOWN dv::region* bnxt_re_dv_alloc_db_region(ibv_context* c) {
  abi::page_description described{};
  std::uint64_t offset = 0;
  u::call call(abi::k_page_object, abi::page_alloc);
  call.make(abi::page_handle).out(abi::page_region, &described).out(abi::page_offset, &offset);
  void* at = run(c, call) == 0 ? map_page(c, offset) : nullptr;
  return at == nullptr ? nullptr : keep(new page{{0, described.page, 0, at}, {}, c, call.made(abi::page_handle)});
}
VENDOR_SHOWN int bnxt_re_dv_free_db_region(ibv_context* c, dv::region* handle) {
  page* p = live<page>(handle);
  if (!check(rule::page_live, p != nullptr) || !check(rule::page_unused, p->users == 0)) return errno;
  munmap(p->dv::region::page, k_page);
  u::call call(abi::k_page_object, abi::page_free);
  return run(c, call.use(abi::page_handle, p->object)) == 0 ? forget(p) : errno;
}

VENDOR_SHOWN ibv_qp* bnxt_re_dv_create_qp(ibv_pd* pd, dv::qp_attr* a) {
  cq *send = live<cq>(a->send_cq), *receive = live<cq>(a->receive_cq);
  umem *sends = live<umem>(a->send_umem), *receives = live<umem>(a->receive_umem);
  page* own = live<page>(a->page);
  if (!check(rule::cq_live, send != nullptr && receive != nullptr) || !check_sizes(*a) ||
      !check(rule::umem_live, sends != nullptr && receives != nullptr) ||
      !check(rule::qp_room, a->send_offset + a->send_bytes <= sends->bytes &&
                                a->receive_offset + a->receive_bytes <= receives->bytes) ||
      !check(rule::qp_page, a->page == nullptr || (own != nullptr && own->context == pd->context)))
    return nullptr;
  const abi::qp_request wanted{0, 0, 0, abi::k_qp_of_given_size, a->send_slots, a->msn_entries};
  abi::qp_response made{};
  const u::queue_capacity room{a->sends, a->receives, a->send_spans, a->receive_spans, a->inline_bytes};
  const u::buffer_description ring = describe(*sends, a->send_offset, a->send_bytes),
                              other = describe(*receives, a->receive_offset, a->receive_bytes);
  auto* q = new qp{};
  u::call call(u::obj_qp, u::qp::create);
  call.in(u::qp::send_buffer, ring).in(u::qp::receive_buffer, other);
  if (own != nullptr) call.use(abi::k_qp_page, own->object);
  call.in(u::k_driver_in, &wanted, sizeof wanted).out(u::k_driver_out, &made);
  if (create_qp(call, q, pd, send, receive, room) != 0) return delete q, nullptr;
  q->uses({send, receive, sends, receives});
  if (own != nullptr) q->uses({own});
  return keep(q);
}
VENDOR_SHOWN int bnxt_re_dv_destroy_qp(ibv_qp* handle) {
  qp* q = live<qp>(handle);
  if (!check(rule::qp_live, q != nullptr)) return errno;
  return destroy(q->context, u::obj_qp, q->handle) == 0 ? forget(q) : errno;
}
VENDOR_SHOWN int bnxt_re_dv_modify_qp(ibv_qp* q, ibv_qp_attr* a, int mask, std::uint32_t type, std::uint32_t value) {
  const bool good = check(rule::qp_live, is_direct(q)) && check(rule::modify_extra, type == 0 && value == 0);
  return good ? modify(q, a, mask) : errno;
}

VENDOR_SHOWN int bnxt_re_dv_init_obj(dv::object_pairs* pairs, std::uint64_t kinds) {
  const auto& [in, out] = pairs->of[1];
  if (!check(rule::object_mask, kinds == dv::k_of_cq) || !check(rule::object_pair, in != nullptr && out != nullptr) ||
      !check(rule::cq_live, live<cq>(in) != nullptr))
    return errno;
  const dv::cq_facts facts{live<cq>(in)->number, k_cqe, 0};
  std::memcpy(out, &facts, sizeof facts);
  return 0;
}
