// SPDX-License-Identifier: MIT
// The provider's side of libibverbs, on the simulated kernel: a device, and what of verbs both vendors' libraries need.
#pragma once
#include <infiniband/verbs.h>

#include <cerrno>
#include <initializer_list>
#include <set>

#include "transport/rdma/uverbs/call.hpp"

#define VENDOR_SHOWN extern "C" __attribute__((visibility("default")))

// The rules of the stand-in libraries: for each the errno of a call that breaks it, and what is said. Breaches are
// counted, for a rule that no test has broken may be none (tests/uverbs/queues.sh).
#define VENDOR_RULES(X)                                                                                              \
  X(umem_bytes, EINVAL, "umem_reg of no bytes")                                                                      \
  X(umem_mask, EOPNOTSUPP, "umem_reg with an unknown bit in comp_mask")                                              \
  X(umem_file, EBADF, "umem_reg of a dma-buf without its descriptor")                                                \
  X(umem_mapped, EFAULT, "umem_reg of memory that is not mapped")                                                    \
  X(umem_page, EINVAL, "umem_reg from within a page")                                                                \
  X(umem_live, EINVAL, "a umem that is none")                                                                        \
  X(umem_unused, EBUSY, "umem_dereg while a queue uses it")                                                          \
  X(cq_handle, EINVAL, "a CQ's handle that is neither 0 nor of cq_mem_alloc")                                        \
  X(cq_room, EINVAL, "a CQ beyond the end of its umem")                                                              \
  X(cq_entries, EINVAL, "a CQ of 0, 1 (compressed) or too many entries")                                             \
  X(cq_live, EINVAL, "a CQ that is none")                                                                            \
  X(cq_unused, EBUSY, "destroy_cq before destroy_qp")                                                                \
  X(qp_kind, EINVAL, "a queue pair that is not RC, or with a comp_mask, a handle or an SRQ")                         \
  X(qp_send_slots, EINVAL, "sq_slots that are not 8 for each of max_send_wr, which is a power of two")               \
  X(qp_send_bytes, EINVAL, "sq_len that is not slots and MSN table, in whole pages")                                 \
  X(qp_table, EINVAL, "sq_npsn or sq_psn_sz that is not the library's")                                              \
  X(qp_receive, EINVAL, "rq_slots or rq_len that is not the library's")                                              \
  X(qp_entry, EINVAL, "sq_wqe_sz or rq_wqe_sz that is not 128, or more SGEs or inline than it holds")                \
  X(qp_room, EINVAL, "a ring beyond the end of its umem")                                                            \
  X(qp_page, EINVAL, "a doorbell page that is none of this context's")                                               \
  X(qp_live, EINVAL, "a queue pair that is none")                                                                    \
  X(page_unused, EBUSY, "free_db_region while a queue pair has the page")                                            \
  X(page_live, EINVAL, "free_db_region of a page that is none")                                                      \
  X(modify_extra, EINVAL, "modify_qp with a type or value that is not 0")                                            \
  X(modify_verbs, EOPNOTSUPP, "ibv_modify_qp on a queue pair of bnxt_re_dv_create_qp")                               \
  X(object_mask, EINVAL, "init_obj of no kind, or of one that is not CQ")                                            \
  X(object_pair, EINVAL, "init_obj with a pair that has a null")                                                     \
  X(parent_live, EINVAL, "a queue without its domain or completion queue")                                           \
  X(parent_unused, EBUSY, "ibv_dealloc_pd of a parent domain that a queue has")                                      \
  X(ring_entries, EINVAL, "a ring of 0 or too many entries")                                                         \
  X(controller_off, EINVAL, "queues that would be in the NIC, since pd_set_sqcmb or _rqcmb has not turned that off") \
  X(alloc_given, ENOMEM, "a domain that gives no memory for a ring")                                                 \
  X(alloc_place, EFAULT, "memory of a ring that is not from a page's start, or not mapped")                          \
  X(alloc_cleared, EFAULT, "memory of a ring that is not zero")                                                      \
  X(ionic_object, EPERM, "an object that is not of this kind")                                                       \
  X(ionic_pipeline, EINVAL, "a pipeline that the NIC has not")

namespace vendor {

enum class rule {
#define VENDOR_NAME(NAME, ERR, SENTENCE) NAME,
  VENDOR_RULES(VENDOR_NAME)
#undef VENDOR_NAME
};

// Whether it is kept. If not, it is said, and errno is set.
bool check(rule r, bool kept);

namespace u = xio::rdma::uverbs;

struct context {
  verbs_context verbs;
  unsigned char driver[64];   // the kernel's response
  std::uint64_t page_offset;  // bnxt: of the context's doorbell page in the file, and where it is mapped
  void* page;
};
context* context_of(ibv_context* c);
// 0, or -1 with errno.
int run(ibv_context* c, u::call& call);
void* map_page(ibv_context* c, std::uint64_t offset);  // null with errno
bool is_mapped(const void* at, std::size_t bytes);

// An object that others use.
struct counted {
  unsigned users = 0;
  std::vector<counted*> used;
  void uses(std::initializer_list<counted*> others) {
    for (counted* one : others) ++one->users, used.push_back(one);
  }
};

// Objects that are there, so that a pointer to another is seen.
template <class T>
std::set<T*>& all() {
  static std::set<T*>* const of_kind = new std::set<T*>;
  return *of_kind;
}
template <class T, class Handle>
T* live(Handle* handle) {
  for (T* one : all<T>())
    if (static_cast<const void*>(one) == handle) return one;
  return nullptr;
}
template <class T>
T* keep(T* one) {
  return *all<T>().insert(one).first;
}
template <class T>
int forget(T* one) {
  for (counted* other : one->used) --other->users;
  all<T>().erase(one);
  delete one;
  return 0;
}

// Adds to the call what all drivers want. 0, or -1 with errno.
int create_qp(u::call& call, ibv_qp* q, ibv_pd* pd, ibv_cq* send, ibv_cq* receive, const u::queue_capacity& room);
int destroy(ibv_context* c, u::object kind, std::uint32_t handle);
int modify(ibv_qp* q, const ibv_qp_attr* a, int mask);  // 0 or the errno
// bnxt: the kind that only its own call modifies.
bool is_direct(const ibv_qp* q);
bool is_context(const void* c);
// ionic: verbs that providers add, and their domains. False: it is none.
void add_extended(verbs_context& v);
bool end_parent(ibv_pd* pd, int* err);

}  // namespace vendor
