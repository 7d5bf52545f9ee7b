// SPDX-License-Identifier: MIT
#include "uverbs/vendor/verbs.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace vendor {

namespace {

struct row {
  const char *name, *sentence;
  int err;
};
#define VENDOR_ROW(NAME, ERR, SENTENCE) {#NAME, SENTENCE, ERR},
constexpr row k_rows[] = {VENDOR_RULES(VENDOR_ROW)};

// How often each rule was broken; written to the session's folder at the end.
struct counts {
  std::atomic<unsigned> broken[std::size(k_rows)];
  ~counts() {
    const char* session = std::getenv("XIO_TEST_UVERBS_SESSION");
    if (session == nullptr) return;
    std::FILE* to = std::fopen((std::string(session) + "/rules." + std::to_string(getpid())).c_str(), "w");
    if (to == nullptr) return;
    for (std::size_t i = 0; i < std::size(k_rows); ++i) std::fprintf(to, "%s %u\n", k_rows[i].name, broken[i].load());
    std::fclose(to);
  }
} breaches;

bool is_bnxt() {
  const char* nic = std::getenv("XIO_TEST_UVERBS_NIC");
  return nic != nullptr && std::strcmp(nic, "bnxt") == 0;
}

// libibverbs and libmlx5 look at words behind an ibv_device that are their own.
struct {
  ibv_device device;
  unsigned char theirs[512];
} one;

int query_port(ibv_context*, std::uint8_t number, ibv_port_attr* to, std::size_t bytes) {
  if (number != 1) return EINVAL;
  ibv_port_attr a{};
  a.state = IBV_PORT_ACTIVE;
  a.max_mtu = a.active_mtu = IBV_MTU_4096;
  a.gid_tbl_len = a.pkey_tbl_len = 1;
  a.max_msg_sz = 1u << 30;
  a.active_width = 2;
  a.active_speed = 64;
  a.link_layer = IBV_LINK_LAYER_ETHERNET;
  std::memcpy(to, &a, std::min(bytes, sizeof a));
  return 0;
}

// A provider must have it. Nobody calls it here; its address lies in this library.
int poll_cq(ibv_cq*, int, ibv_wc*) { return -1; }

}  // namespace

bool check(rule r, bool kept) {
  const auto i = static_cast<std::size_t>(r);
  if (kept) return true;
  ++breaches.broken[i];
  std::fprintf(stderr, "vendor's library: %s\n", k_rows[i].sentence);
  errno = k_rows[i].err;
  return false;
}

bool is_context(const void* c) { return live<ibv_context>(c) != nullptr; }

context* context_of(ibv_context* c) {
  return reinterpret_cast<context*>(reinterpret_cast<unsigned char*>(c) - offsetof(verbs_context, context));
}

int run(ibv_context* c, u::call& call) {
  const int err = call.run(c->cmd_fd, is_bnxt() ? u::driver_bnxt : u::driver_ionic);
  errno = err;
  return err == 0 ? 0 : -1;
}

bool is_mapped(const void* at, std::size_t bytes) {
  std::vector<unsigned char> there(bytes / 4096 + 2);
  const auto from = reinterpret_cast<std::uintptr_t>(at) & ~std::uintptr_t{4095};
  return mincore(reinterpret_cast<void*>(from), reinterpret_cast<std::uintptr_t>(at) + bytes - from, there.data()) == 0;
}

void* map_page(ibv_context* c, std::uint64_t offset) {
  void* at = mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, c->cmd_fd, static_cast<off_t>(offset));
  return at == MAP_FAILED ? nullptr : at;
}

int create_qp(u::call& call, ibv_qp* q, ibv_pd* pd, ibv_cq* send, ibv_cq* receive, const u::queue_capacity& room) {
  u::queue_capacity given{};
  call.make(u::qp::handle).use(u::qp::pd, pd->handle).use(u::qp::send_cq, send->handle);
  call.use(u::qp::receive_cq, receive->handle).in(u::qp::user_handle, std::uint64_t{0}).in(u::qp::capacity, room);
  call.choose(u::qp::type, u::qp::k_reliable).out(u::qp::capacity_made, &given).out(u::qp::number, &q->qp_num);
  if (run(pd->context, call) != 0) return -1;
  q->context = pd->context;
  q->handle = call.made(u::qp::handle);
  return 0;
}

int destroy(ibv_context* c, u::object kind, std::uint32_t handle) {
  std::uint32_t events[2] = {};
  u::call call(kind, u::qp::destroy);
  call.use(u::qp::destroyed, handle);
  return run(c, call.out(u::qp::destroy_response, events, kind == u::obj_cq ? 8 : 4));
}

int modify(ibv_qp* q, const ibv_qp_attr* a, int mask) {
  u::modify_qp m{};
  m.handle = q->handle;
  m.mask = static_cast<std::uint32_t>(mask);
  m.state = static_cast<std::uint8_t>(a->qp_state);
  m.access = a->qp_access_flags;
  m.pkey_index = a->pkey_index;
  m.port = a->port_num;
  m.path_mtu = static_cast<std::uint8_t>(a->path_mtu);
  m.remote_number = a->dest_qp_num;
  m.receive_psn = a->rq_psn;
  m.send_psn = a->sq_psn;
  m.responder_depth = a->max_dest_rd_atomic;
  m.initiator_depth = a->max_rd_atomic;
  m.rnr_timer = a->min_rnr_timer;
  m.timeout = a->timeout;
  m.retries = a->retry_cnt;
  m.rnr_retries = a->rnr_retry;
  const ibv_ah_attr& way = a->ah_attr;
  std::memcpy(m.destination.gid, way.grh.dgid.raw, sizeof m.destination.gid);
  m.destination.source_gid = way.grh.sgid_index;
  m.destination.hop_limit = way.grh.hop_limit;
  m.destination.is_global = way.is_global;
  m.destination.port = way.port_num;
  u::call call(u::obj_device, u::device::invoke_write);
  call.choose(u::device::write_command, u::cmd_modify_qp).in(u::device::core_in, m);
  return run(q->context, call) == 0 ? 0 : errno;
}

}  // namespace vendor

// --- libibverbs' own calls, before which this library is loaded -----------------------------------------

using namespace vendor;

VENDOR_SHOWN ibv_device** ibv_get_device_list(int* count) {
  std::strcpy(one.device.name, is_bnxt() ? "bnxt_re0" : "ionic_0");
  std::strcpy(one.device.dev_name, "uverbs0");
  one.device.node_type = IBV_NODE_CA;
  one.device.transport_type = IBV_TRANSPORT_IB;
  if (count != nullptr) *count = 1;
  return new ibv_device* [2] { &one.device, nullptr };
}
VENDOR_SHOWN void ibv_free_device_list(ibv_device** list) { delete[] list; }

VENDOR_SHOWN ibv_context* ibv_open_device(ibv_device* device) {
  auto* c = new context{};
  ibv_context* const mine = &c->verbs.context;
  mine->device = device;
  mine->ops.poll_cq = poll_cq;
  mine->cmd_fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);
  mine->async_fd = eventfd(0, EFD_CLOEXEC);
  mine->abi_compat = __VERBS_ABI_IS_EXTENDED;
  c->verbs.sz = sizeof c->verbs;
  c->verbs.query_port = query_port;
  add_extended(c->verbs);
  all<ibv_context>().insert(mine);
  // The mark of the vendor's library, and the driver's variable mode.
  const std::uint64_t wanted = 1ull << 63 | (is_bnxt() ? 3 : 0);
  u::call call(u::obj_device, u::device::get_context);
  call.in(u::k_driver_in, wanted).out(u::k_driver_out, c->driver, sizeof c->driver);
  if (run(mine, call) == 0) return mine;
  ibv_close_device(mine);
  return nullptr;
}
VENDOR_SHOWN int ibv_close_device(ibv_context* c) {
  if (context_of(c)->page != nullptr) munmap(context_of(c)->page, 4096);
  close(c->cmd_fd);
  close(c->async_fd);
  all<ibv_context>().erase(c);
  delete context_of(c);
  return 0;
}

VENDOR_SHOWN int ibv_query_device(ibv_context*, ibv_device_attr* to) {
  *to = {};
  to->max_qp_wr = 32768;
  to->max_sge = 6;
  to->max_cqe = 1 << 17;
  to->atomic_cap = IBV_ATOMIC_HCA;
  to->max_qp_rd_atom = to->max_qp_init_rd_atom = 16;
  to->phys_port_cnt = 1;
  return 0;
}

VENDOR_SHOWN ssize_t _ibv_query_gid_table(ibv_context* c, ibv_gid_entry* to, std::size_t most, std::uint32_t,
                                          std::size_t bytes) {
  std::uint64_t count = 0;
  u::call call(u::obj_device, u::device::query_gids);
  call.in(u::device::entry_bytes, std::uint64_t{bytes}).in(u::device::gid_flags, std::uint32_t{0});
  call.out(u::device::gid_entries, to, most * bytes).out(u::device::gid_count, &count);
  return run(c, call) == 0 ? static_cast<ssize_t>(count) : -errno;
}

VENDOR_SHOWN ibv_pd* ibv_alloc_pd(ibv_context* c) {
  const u::alloc_pd wanted{};
  u::alloc_pd_response made{};
  struct {
    std::uint32_t number, page;
    std::uint64_t offset;
  } mine{};
  u::call call(u::obj_device, u::device::invoke_write);
  call.choose(u::device::write_command, u::cmd_alloc_pd).in(u::device::core_in, wanted);
  call.out(u::device::core_out, &made);
  if (is_bnxt()) call.out(u::k_driver_out, &mine, sizeof mine);
  if (run(c, call) != 0) return nullptr;
  if (is_bnxt()) context_of(c)->page_offset = mine.offset;
  return new ibv_pd{c, made.handle};
}
VENDOR_SHOWN int ibv_dealloc_pd(ibv_pd* pd) {
  int parents = 0;
  if (end_parent(pd, &parents)) return parents;
  u::call call(u::obj_pd, 0);  // UVERBS_METHOD_PD_DESTROY
  const int err = run(pd->context, call.use(0, pd->handle)) == 0 ? 0 : errno;
  delete pd;
  return err;
}

VENDOR_SHOWN ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* at, std::size_t bytes, std::uint64_t iova, unsigned access) {
  const u::reg_mr wanted{0, reinterpret_cast<std::uint64_t>(at), bytes, iova, pd->handle, access};
  u::reg_mr_response r{};
  u::call call(u::obj_device, u::device::invoke_write);
  call.choose(u::device::write_command, u::cmd_reg_mr).in(u::device::core_in, wanted).out(u::device::core_out, &r);
  if (run(pd->context, call) != 0) return nullptr;
  return new ibv_mr{pd->context, pd, at, bytes, r.handle, r.lkey, r.rkey};
}
VENDOR_SHOWN ibv_mr*(ibv_reg_mr)(ibv_pd* pd, void* at, std::size_t bytes, int access) {
  return ibv_reg_mr_iova2(pd, at, bytes, reinterpret_cast<std::uint64_t>(at), static_cast<unsigned>(access));
}
VENDOR_SHOWN int ibv_dereg_mr(ibv_mr* m) {
  u::call call(u::obj_mr, u::mr::destroy);
  run(m->context, call.use(u::mr::destroyed, m->handle));
  delete m;
  return 0;
}

VENDOR_SHOWN int ibv_modify_qp(ibv_qp* q, ibv_qp_attr* a, int mask) {
  return check(rule::modify_verbs, !is_direct(q)) ? modify(q, a, mask) : errno;
}
