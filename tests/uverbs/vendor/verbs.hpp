// SPDX-License-Identifier: MIT
// The provider's side of libibverbs, on the simulated kernel: a device, and what of verbs both vendors' libraries need.
#pragma once
#include <infiniband/verbs.h>

#include <initializer_list>
#include <set>
#include <vector>

#include "transport/rdma/uverbs/call.hpp"
#include "uverbs/vendor/rules.hpp"

#define VENDOR_SHOWN extern "C" __attribute__((visibility("default")))

namespace vendor {

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
