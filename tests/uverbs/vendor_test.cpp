// SPDX-License-Identifier: MIT
// The stand-in for a vendor's library judged itself: one call that is right, then each that breaks one rule, with the
// errno that it must get. Structures end where memory ends, so that a library that reads more is seen.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "transport/rdma/bnxt/library.hpp"
#include "transport/rdma/ionic/library.hpp"

namespace dv = xio::rdma::bnxt::dv;

namespace {

constexpr std::size_t k_page = 4096, k_memory = 64 * k_page;
int failures = 0;

template <class F>
void find(const char* name, F& to) {
  void* found = dlsym(RTLD_DEFAULT, name);
  std::memcpy(&to, &found, sizeof found);
}

void expect(const char* what, int err, int wanted) {
  if (err == wanted) return;
  std::printf("FAIL %s: errno %d, expected %d\n", what, err, wanted);
  ++failures;
}
int of(const void* made) { return made == nullptr ? errno : 0; }

// A copy of it right before a page that cannot be read.
template <class T>
T* at_end(const T& value) {
  static auto* const pages = static_cast<unsigned char*>(
      mmap(nullptr, 2 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + k_page, k_page, PROT_NONE);
  return static_cast<T*>(std::memcpy(pages + k_page - sizeof value, &value, sizeof value));
}

template <class T>
struct wrong {
  const char* what;
  int err;
  void (*change)(T&);
};
// make: with each change alone, returns null and errno.
template <class T, class Make>
void try_all(const T& right, const Make& make, std::initializer_list<wrong<T>> table) {
  for (const wrong<T>& w : table) {
    T other = right;
    w.change(other);
    expect(w.what, of(make(at_end(other))), w.err);
  }
}

void bnxt(ibv_context* context, ibv_pd* domain, unsigned char* memory) {
  dv::calls call{};
  find("bnxt_re_dv_umem_reg", call.umem_reg), find("bnxt_re_dv_umem_dereg", call.umem_dereg);
  find("bnxt_re_dv_create_cq", call.create_cq), find("bnxt_re_dv_destroy_cq", call.destroy_cq);
  find("bnxt_re_dv_create_qp", call.create_qp), find("bnxt_re_dv_destroy_qp", call.destroy_qp);
  find("bnxt_re_dv_modify_qp", call.modify_qp), find("bnxt_re_dv_init_obj", call.init_obj);
  find("bnxt_re_dv_alloc_db_region", call.alloc_db_region), find("bnxt_re_dv_free_db_region", call.free_db_region);

  const dv::umem_attr umem_right{memory, k_memory, IBV_ACCESS_LOCAL_WRITE, 0, k_page, 0, -1, 0};
  const auto pin = [&](dv::umem_attr* a) { return call.umem_reg(context, a); };
  void* const umem = pin(at_end(umem_right));
  expect("umem_reg", of(umem), 0);
  try_all<dv::umem_attr>(umem_right, pin,
                         {{"umem of no bytes", EINVAL, [](auto& a) { a.bytes = 0; }},
                          {"umem from within a page", EINVAL,
                           [](auto& a) { a.address = static_cast<char*>(a.address) + 64, a.bytes = 64; }},
                          {"umem that is not mapped", EFAULT, [](auto& a) { a.bytes = std::size_t{1} << 40; }},
                          {"umem of a file that is none", EBADF, [](auto& a) { a.mask = 1; }},
                          {"umem with another mask", EOPNOTSUPP, [](auto& a) { a.mask = 2; }}});

  const dv::cq_attr cq_right{0, umem, 0, 1024, 0};
  const auto make_cq = [&](dv::cq_attr* a) { return call.create_cq(context, a); };
  ibv_cq* const q = make_cq(at_end(cq_right));
  expect("create_cq", of(q), 0);
  try_all<dv::cq_attr>(cq_right, make_cq,
                       {{"CQ without memory", EINVAL, [](auto& a) { a.umem = nullptr; }},
                        {"CQ beyond its memory", EINVAL, [](auto& a) { a.offset = k_memory - 64; }},
                        {"CQ of one entry", EINVAL, [](auto& a) { a.entries = 1; }},
                        {"CQ with a handle", EINVAL, [](auto& a) { a.handle = 7; }}});

  dv::region* const page = call.alloc_db_region(context);
  expect("alloc_db_region", of(page), 0);
  constexpr std::uint32_t k_sends = 256, k_receives = 32, k_slots = 8 * k_sends;
  dv::qp_attr qp_right{};
  {
    auto& a = qp_right;
    a.type = IBV_QPT_RC, a.sends = k_sends, a.receives = k_receives, a.send_spans = a.receive_spans = 6;
    a.inline_bytes = 96, a.send_cq = a.receive_cq = q, a.page = page, a.send_umem = a.receive_umem = umem;
    a.send_bytes = k_slots * 16 + k_slots / 2 * 8, a.send_slots = k_slots, a.msn_entries = k_slots / 2, a.msn_bytes = 8;
    a.receive_offset = a.send_bytes, a.receive_bytes = k_receives * 128, a.receive_slots = k_receives * 8;
    a.send_entry_bytes = a.receive_entry_bytes = 128;
  }
  const auto make_qp = [&](dv::qp_attr* a) { return call.create_qp(domain, a); };
  ibv_qp* const pair = make_qp(at_end(qp_right));
  expect("create_qp", of(pair), 0);
  try_all<dv::qp_attr>(
      qp_right, make_qp,
      {{"qp_type", EINVAL, [](auto& a) { a.type = IBV_QPT_UD; }},
       {"comp_mask", EINVAL, [](auto& a) { a.mask = 1; }},
       {"max_send_wr", EINVAL, [](auto& a) { a.sends = 255; }},
       {"max_recv_wr", EINVAL, [](auto& a) { a.receives = 31; }},
       {"max_send_sge", EINVAL, [](auto& a) { a.send_spans = 7; }},
       {"max_inline_data", EINVAL, [](auto& a) { a.inline_bytes = 97; }},
       {"sq_len", EINVAL, [](auto& a) { a.send_bytes -= k_page; }},
       {"sq_slots", EINVAL, [](auto& a) { --a.send_slots; }},
       {"sq_npsn", EINVAL, [](auto& a) { a.msn_entries = k_sends; }},
       {"sq_psn_sz", EINVAL, [](auto& a) { a.msn_bytes = 16; }},
       {"sq_wqe_sz", EINVAL, [](auto& a) { a.send_entry_bytes = 64; }},
       {"rq_len", EINVAL, [](auto& a) { a.receive_bytes = 0; }},
       {"rq_slots", EINVAL, [](auto& a) { a.receive_slots = 4 * k_receives; }},
       {"rq_wqe_sz", EINVAL, [](auto& a) { a.receive_entry_bytes = 64; }},
       {"a page of nobody", EINVAL, [](auto& a) { a.page = reinterpret_cast<dv::region*>(a.send_cq); }},
       {"no CQ", EINVAL, [](auto& a) { a.send_cq = nullptr; }},
       {"no memory", EINVAL, [](auto& a) { a.receive_umem = nullptr; }},
       {"a ring beyond its memory", EINVAL, [](auto& a) { a.send_offset = k_memory - k_page; }}});

  ibv_qp_attr state{};
  state.qp_state = IBV_QPS_RTR;
  expect("RESET to RTR", call.modify_qp(pair, &state, IBV_QP_STATE, 0, 0), EINVAL);
  expect("modify_qp with a type", call.modify_qp(pair, &state, IBV_QP_STATE, 1, 0), EINVAL);
  expect("ibv_modify_qp", ibv_modify_qp(pair, &state, IBV_QP_STATE), EOPNOTSUPP);

  unsigned char facts[sizeof(dv::cq_facts) + 64], canary[64];
  std::memset(facts, 0xa5, sizeof facts), std::memset(canary, 0xa5, sizeof canary);
  dv::object_pairs pairs{};
  expect("init_obj with a null", call.init_obj(&pairs, dv::k_of_cq), EINVAL);
  pairs.of[1] = {q, facts};
  expect("init_obj of nothing", call.init_obj(&pairs, 0), EINVAL);
  expect("init_obj", call.init_obj(at_end(pairs), dv::k_of_cq), 0);
  expect("bytes behind what init_obj tells", std::memcmp(facts + sizeof(dv::cq_facts), canary, sizeof canary), 0);

  expect("destroy_cq before destroy_qp", call.destroy_cq(q), EBUSY);
  expect("umem_dereg before destroy_qp", call.umem_dereg(umem), EBUSY);
  expect("free_db_region before destroy_qp", call.free_db_region(context, page), EBUSY);
  expect("destroy_qp", call.destroy_qp(pair), 0);
  expect("destroy_qp again", call.destroy_qp(pair), EINVAL);
  expect("destroy_cq", call.destroy_cq(q), 0);
  expect("free_db_region", call.free_db_region(context, page), 0);
  expect("free_db_region again", call.free_db_region(context, page), EINVAL);
  expect("umem_dereg", call.umem_dereg(umem), 0);
}

// A domain whose rings lie in `memory`, one after the other.
struct given_memory {
  unsigned char* memory;
  std::size_t used = 0, within = 0;  // of a page
  static void* give(ibv_pd*, void* self, std::size_t bytes, std::size_t, std::uint64_t) {
    auto* g = static_cast<given_memory*>(self);
    return g->memory == nullptr ? nullptr : g->memory + g->within + std::exchange(g->used, g->used + bytes);
  }
};

void ionic(ibv_context* context, ibv_pd* domain, unsigned char* memory) {
  namespace dv = xio::rdma::ionic::dv;
  dv::calls call{};
  find("ionic_dv_get_ctx", call.get_ctx), find("ionic_dv_get_cq", call.get_cq), find("ionic_dv_get_qp", call.get_qp);
  find("ionic_dv_qp_get_udma_idx", call.qp_get_udma_idx), find("ionic_dv_pd_set_sqcmb", call.pd_set_sqcmb);
  find("ionic_dv_pd_set_rqcmb", call.pd_set_rqcmb), find("ionic_dv_pd_set_udma_mask", call.pd_set_udma_mask);
  given_memory from{memory};
  ibv_parent_domain_init_attr how{domain, nullptr, 3, given_memory::give, nullptr, &from};
  ibv_pd* const parent = ibv_alloc_parent_domain(context, &how);
  expect("a parent domain", of(parent), 0);
  expect("pd_set_udma_mask", call.pd_set_udma_mask(parent, 2), 0);
  expect("a third pipeline", call.pd_set_udma_mask(parent, 4), EINVAL);
  expect("pd_set_sqcmb of a plain domain", call.pd_set_sqcmb(domain, false, false, false), EPERM);

  const auto cq = [&](std::uint32_t entries, ibv_pd* of_whom) {
    ibv_cq_init_attr_ex a{};
    a.cqe = entries, a.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, a.parent_domain = of_whom;
    return ibv_cq_ex_to_cq(ibv_create_cq_ex(context, &a));
  };
  ibv_cq* const q = cq(27, parent);
  expect("ibv_create_cq_ex", of(q), 0);
  expect("a CQ of a plain domain", of(cq(27, domain)), EINVAL);
  expect("a CQ of no entries", of(cq(0, parent)), EINVAL);
  from.used = 0, memory[64] = 1;
  expect("memory that is not zero", of(cq(27, parent)), EFAULT);
  memory[64] = 0, from.used = k_page, from.within = 64;
  expect("memory from within a page", of(cq(27, parent)), EFAULT);
  from.within = 0, from.memory = nullptr;
  expect("no memory", of(cq(27, parent)), ENOMEM);
  from.memory = memory;

  const auto qp = [&](std::uint32_t sends) {
    ibv_qp_init_attr_ex a{};
    a.send_cq = a.recv_cq = q, a.cap = {sends, 63, 2, 1, 32}, a.qp_type = IBV_QPT_RC;
    a.comp_mask = IBV_QP_INIT_ATTR_PD, a.pd = parent;
    return ibv_create_qp_ex(context, &a);
  };
  expect("rings in the NIC", of(qp(63)), EINVAL);
  call.pd_set_sqcmb(parent, false, false, false), call.pd_set_rqcmb(parent, false, false, false);
  expect("too many sends", of(qp(32768)), EINVAL);
  ibv_qp* const pair = qp(63);
  expect("ibv_create_qp_ex", of(pair), 0);
  if (pair == nullptr) return;
  expect("qp_get_udma_idx", call.qp_get_udma_idx(pair), 1);
  dv::ring ring{}, other{};
  expect("get_cq", call.get_cq(&ring, q, 1) + call.get_cq(&other, q, 0), 0);
  expect("the ring of the pipeline, and none of the other", ring.at == memory && other.at == nullptr, 1);
  dv::pair_rings rings{};
  expect("get_qp of a CQ", call.get_qp(&rings, reinterpret_cast<ibv_qp*>(q)), EPERM);
  expect("get_qp", call.get_qp(&rings, pair), 0);
  dv::context_facts facts{};
  expect("get_ctx with swapped arguments",
         call.get_ctx(reinterpret_cast<dv::context_facts*>(context), reinterpret_cast<ibv_context*>(&facts)), EPERM);

  expect("ibv_destroy_cq before ibv_destroy_qp", ibv_destroy_cq(q), EBUSY);
  expect("ibv_dealloc_pd before ibv_destroy_qp", ibv_dealloc_pd(parent), EBUSY);
  expect("ibv_destroy_qp", ibv_destroy_qp(pair), 0);
  expect("ibv_destroy_cq", ibv_destroy_cq(q), 0);
  expect("ibv_dealloc_pd", ibv_dealloc_pd(parent), 0);
}

}  // namespace

int main() {
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* context = ibv_open_device(list[0]);
  ibv_pd* domain = context == nullptr ? nullptr : ibv_alloc_pd(context);
  expect("a device with a domain", of(domain), 0);
  auto* memory = static_cast<unsigned char*>(
      mmap(nullptr, k_memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
  const bool is_bnxt = std::strcmp(ibv_get_device_name(list[0]), "bnxt_re0") == 0;
  if (domain != nullptr) (is_bnxt ? bnxt : ionic)(context, domain, memory);
  std::printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}
