// SPDX-License-Identifier: MIT
// A libfabric with one provider, for tests: named cxi, with its way of addressing memory, and as strict as a NIC. It
// serves one process and lies on request: FAKE_LIBFABRIC holds words with commas, which it reads at each call.
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <string>

namespace {

constexpr std::size_t k_tx = 64;

// "" is what a word without a value has; null: it is not there.
const char* mood(const std::string& name) {
  static std::string value;
  const char* all = std::getenv("FAKE_LIBFABRIC");
  const std::string list = "," + std::string(all != nullptr ? all : "") + ",";
  const std::size_t at = list.find("," + name);
  if (at == std::string::npos) return nullptr;
  const std::size_t from = at + 1 + name.size();
  if (list[from] == ',') return "";
  if (list[from] != '=') return nullptr;
  value = list.substr(from + 1, list.find(',', from) - from - 1);
  return value.c_str();
}
bool fails(const char* call) {
  const char* which = mood("fail");
  return which != nullptr && std::string(which) == call;
}

// A process that breaks a rule of the provider's does not go on.
void must(bool kept, const char* rule) {
  if (kept) return;
  fprintf(stderr, "fake libfabric: %s\n", rule);
  abort();
}

struct registration : fid_mr {
  unsigned char* base;
  std::size_t bytes;
  std::uint64_t access;
  bool bound, enabled, of_gpu;
};
std::map<std::uint64_t, registration*> g_keys;
int g_bound = 0;  // to the endpoint that peers write to

struct request {
  bool is_atomic, is_write, compares;
  void* context;
  std::uint64_t remote, key, bytes;
  unsigned char *local, *result;
  fi_op change;
  std::uint64_t operand, compare;
};
struct queue : fid_cq {
  std::deque<request> under_way;
  std::deque<void*> done;
  std::deque<fi_cq_err_entry> failed;
};
struct end : fid_ep {
  queue* cq = nullptr;
  bool enabled = false;
  unsigned char address = 0;
};

// --- Carrying out ----------------------------------------------------------------------------------------

template <class T>
void change(const request& r, unsigned char* at) {
  T old, operand = static_cast<T>(r.operand), compare = static_cast<T>(r.compare);
  std::memcpy(&old, at, sizeof old);
  T now = old;
  switch (r.change) {
    case FI_SUM: now = static_cast<T>(old + operand); break;
    case FI_BXOR: now = old ^ operand; break;
    case FI_ATOMIC_WRITE: now = operand; break;
    case FI_CSWAP: now = old == compare ? operand : old; break;
    case FI_MSWAP: now = (operand & compare) | (old & ~compare); break;
    default: must(false, "an op that nobody asks for");
  }
  if (const char* wrong = mood("wrong"); wrong != nullptr && std::atoi(wrong) == int{sizeof(T)}) ++now;
  if (mood("wrong_masks") != nullptr && r.change == FI_MSWAP) ++now;
  std::memcpy(at, &now, sizeof now);
  std::memcpy(r.result, &old, sizeof old);
}

// The NIC's code for what is wrong; 0: it was carried out.
int carry_out(const request& r) {
  const auto found = g_keys.find(r.key);
  if (found == g_keys.end()) return 26;
  const registration& m = *found->second;
  if (!m.bound || !m.enabled) return 18;
  if (r.remote > m.bytes || r.bytes > m.bytes - r.remote) return 52;
  const std::uint64_t wanted = r.is_write || r.is_atomic ? FI_REMOTE_WRITE : FI_REMOTE_READ;
  if ((m.access & wanted) == 0) return 5;
  unsigned char* at = m.base + r.remote;
  if (r.is_atomic) {
    if (r.remote % r.bytes != 0) return 41;
    r.bytes == 4 ? change<std::uint32_t>(r, at) : change<std::uint64_t>(r, at);
  } else if (r.is_write) {
    std::memcpy(at, r.local, r.bytes);
  } else {
    std::memcpy(r.local, at, r.bytes);
  }
  return 0;
}

void end_one(queue& q, const request& r) {
  int code = carry_out(r);
  if (const char* forced = mood("code")) code = std::atoi(forced);
  if (code == 0) {
    mood("backwards") != nullptr ? q.done.push_front(r.context) : q.done.push_back(r.context);
    return;
  }
  fi_cq_err_entry e{};
  e.op_context = r.context;
  e.err = FI_EIO;
  e.prov_errno = code;
  q.failed.push_back(e);
}

void advance(queue& q) {
  if (mood("mute") != nullptr || q.under_way.empty()) return;
  if (mood("disordered") != nullptr) {
    // Reads and atomics overtake writes.
    const auto fast =
        std::find_if(q.under_way.begin(), q.under_way.end(), [](const request& r) { return !r.is_write; });
    if (fast != q.under_way.end() && fast != q.under_way.begin()) {
      end_one(q, *fast);
      q.under_way.erase(fast);
      return;
    }
  }
  end_one(q, q.under_way.front());
  q.under_way.pop_front();
}

ssize_t read_queue(fid_cq* cq, void* buf, size_t count) {
  queue& q = *static_cast<queue*>(cq);
  if (mood("cq_lost") != nullptr) return -FI_EIO;
  advance(q);
  if (!q.failed.empty()) return -FI_EAVAIL;
  auto* out = static_cast<fi_cq_entry*>(buf);
  size_t n = 0;
  if (mood("foreign") != nullptr && count > 2) {
    static int nobody;
    out[n++].op_context = &nobody;
    if (!q.done.empty()) out[n++].op_context = q.done.front();  // which comes twice
  }
  for (; n < count && !q.done.empty(); ++n) {
    out[n].op_context = q.done.front();
    q.done.pop_front();
  }
  return n == 0 ? -FI_EAGAIN : static_cast<ssize_t>(n);
}
ssize_t read_failure(fid_cq* cq, fi_cq_err_entry* out, uint64_t) {
  queue& q = *static_cast<queue*>(cq);
  if (q.failed.empty()) return -FI_EAGAIN;
  *out = q.failed.front();
  q.failed.pop_front();
  return 1;
}
const char* text_of(fid_cq*, int, const void*, char*, size_t) { return "as the test asks"; }

// --- Posting -----------------------------------------------------------------------------------------------

ssize_t post(fid_ep* ep, const char* call, const request& r, bool early) {
  end& e = *static_cast<end*>(ep);
  must(e.enabled && e.cq != nullptr, "a post to an endpoint that is not enabled");
  if (fails(call)) return -FI_EIO;
  if (mood("again") != nullptr || e.cq->under_way.size() + e.cq->done.size() >= k_tx) return -FI_EAGAIN;
  for (const request& other : e.cq->under_way) must(other.context != r.context, "a context that is still in use");
  if (early && mood("early") != nullptr)
    e.cq->done.push_back(r.context);
  else
    e.cq->under_way.push_back(r);
  return 0;
}
ssize_t copy(fid_ep* ep, const fi_msg_rma* m, uint64_t flags, bool is_write) {
  must(m->iov_count == 1 && m->rma_iov_count == 1 && m->msg_iov->iov_len == m->rma_iov->len, "pieces that do not fit");
  must(!is_write || (flags & FI_DELIVERY_COMPLETE) != 0, "a write that completes before its delivery");
  for (const auto& [key, r] : g_keys)
    must(!r->of_gpu || static_cast<unsigned char*>(m->msg_iov->iov_base) - r->base >= static_cast<long>(r->bytes) ||
             static_cast<unsigned char*>(m->msg_iov->iov_base) < r->base || (m->desc != nullptr && m->desc[0] == r),
         "GPU memory without its descriptor");
  request r{};
  r.is_write = is_write;
  r.context = m->context;
  r.remote = m->rma_iov->addr;
  r.key = m->rma_iov->key;
  r.bytes = m->rma_iov->len;
  r.local = static_cast<unsigned char*>(m->msg_iov->iov_base);
  return post(ep, is_write ? "writemsg" : "readmsg", r, true);
}
ssize_t write_msg(fid_ep* ep, const fi_msg_rma* m, uint64_t flags) { return copy(ep, m, flags, true); }
ssize_t read_msg(fid_ep* ep, const fi_msg_rma* m, uint64_t flags) { return copy(ep, m, flags, false); }

ssize_t atomic(fid_ep* ep, const fi_msg_atomic* m, const void* compare, void* result) {
  if (mood("stubs") != nullptr) return -FI_ENOSYS;
  request r{};
  r.is_atomic = true;
  r.context = m->context;
  r.remote = m->rma_iov->addr;
  r.key = m->rma_iov->key;
  r.bytes = m->datatype == FI_UINT32 ? 4 : 8;
  r.change = m->op;
  std::memcpy(&r.operand, m->msg_iov->addr, r.bytes);
  if (compare != nullptr) std::memcpy(&r.compare, compare, r.bytes);
  r.result = static_cast<unsigned char*>(result);
  return post(ep, "atomicmsg", r, false);
}
ssize_t fetch_msg(fid_ep* ep, const fi_msg_atomic* m, fi_ioc* result, void**, size_t, uint64_t) {
  return atomic(ep, m, nullptr, result->addr);
}
ssize_t compare_msg(fid_ep* ep, const fi_msg_atomic* m, const fi_ioc* compare, void**, size_t, fi_ioc* result, void**,
                    size_t, uint64_t) {
  return atomic(ep, m, compare->addr, result->addr);
}

// --- Objects -----------------------------------------------------------------------------------------------

int nothing(fid*, fid*, uint64_t) { return 0; }

int close_plain(fid*) { return 0; }
fi_ops g_plain{sizeof(fi_ops), close_plain, nothing, nullptr, nullptr, nullptr, nullptr};

int close_key(fid* f) {
  auto* m = reinterpret_cast<registration*>(f);
  g_bound -= m->bound ? 1 : 0;
  g_keys.erase(m->key);
  delete m;
  return 0;
}
int bind_key(fid* f, fid*, uint64_t) {
  if (fails("mr_bind")) return -FI_EIO;
  reinterpret_cast<registration*>(f)->bound = true;
  ++g_bound;
  return 0;
}
int enable_key(fid* f, int, void*) {
  if (fails("mr_enable")) return -FI_EIO;
  reinterpret_cast<registration*>(f)->enabled = true;
  return 0;
}
fi_ops g_key_ops{sizeof(fi_ops), close_key, bind_key, enable_key, nullptr, nullptr, nullptr};

// ROCr's word for it: 1 a GPU's, 0 another's, -1 there is no ROCr in the process.
int is_of_gpu(const void* at) {
  struct pointer_info {  // hsa_amd_pointer_info_t, of which the caller gives the size
    std::uint32_t size = sizeof(pointer_info);
    int type;
    void *agent_base, *host_base;
    std::size_t bytes;
    void* user;
    std::uint64_t owner;
    std::uint32_t flags;
  } info;
  using asks = int(const void*, pointer_info*, void*, void*, void*);
  using gets = int(std::uint64_t, int, void*);
  auto* ask = reinterpret_cast<asks*>(dlsym(RTLD_DEFAULT, "hsa_amd_pointer_info"));
  auto* get = reinterpret_cast<gets*>(dlsym(RTLD_DEFAULT, "hsa_agent_get_info"));
  if (ask == nullptr || get == nullptr || ask(at, &info, nullptr, nullptr, nullptr) != 0) return -1;
  int device = 0;
  constexpr int k_device = 17, k_is_gpu = 1;  // HSA_AGENT_INFO_DEVICE, HSA_DEVICE_TYPE_GPU
  return info.type == 1 && get(info.owner, k_device, &device) == 0 && device == k_is_gpu;
}

int make_key(fid*, const fi_mr_attr* a, uint64_t, fid_mr** out) {
  const std::uint64_t wanted = a->requested_key;
  void* const base = a->mr_iov->iov_base;
  if (fails("mr_reg")) return -FI_ENOMEM;
  if (a->iface != FI_HMEM_SYSTEM) {
    fprintf(stderr, "fake libfabric: GPU memory of interface %d\n", static_cast<int>(a->iface));
    if (fails("gpu")) return -FI_EOPNOTSUPP;
    must(mood("hmem") != nullptr, "GPU memory that was not offered");
  }
  must(is_of_gpu(base) < 0 || is_of_gpu(base) == (a->iface == FI_HMEM_ROCR),
       "memory that is not whose it is said to be");
  if (mood("no_key") != nullptr || g_keys.contains(wanted)) return -FI_ENOKEY;
  must(wanted > 99 && wanted <= 0xffffffff, "a key that cxi has for other ends, or one of more than 32 bits");
  auto* m = new registration{};
  m->fid.ops = &g_key_ops;
  m->key = wanted;
  m->base = static_cast<unsigned char*>(base);
  m->bytes = a->mr_iov->iov_len;
  m->access = a->access;
  m->of_gpu = a->iface != FI_HMEM_SYSTEM;
  m->mem_desc = m->of_gpu ? m : nullptr;
  g_keys[wanted] = m;
  *out = m;
  return 0;
}
fi_ops_mr g_mr{sizeof(fi_ops_mr), nullptr, nullptr, make_key};

int close_queue(fid* f) { return delete reinterpret_cast<queue*>(f), 0; }
fi_ops g_queue_ops{sizeof(fi_ops), close_queue, nothing, nullptr, nullptr, nullptr, nullptr};
fi_ops_cq g_cq{sizeof(fi_ops_cq), read_queue, nullptr, read_failure, nullptr, nullptr, nullptr, text_of};
int make_queue(fid_domain*, fi_cq_attr* a, fid_cq** out, void*) {
  if (fails("cq_open")) return -FI_EIO;
  must(a->size >= k_tx, "a completion queue that overflows");
  auto* q = new queue{};
  q->fid.ops = &g_queue_ops;
  q->ops = &g_cq;
  *out = q;
  return 0;
}

unsigned char g_ends = 0;
int close_end(fid* f) {
  auto* e = reinterpret_cast<end*>(f);
  must(e->address != 1 || g_bound == 0, "an endpoint that is closed before the memory that is bound to it");
  delete e;
  return 0;
}
int bind_end(fid* f, fid* to, uint64_t) {
  if (fails("bind")) return -FI_EIO;
  if (to->ops == &g_queue_ops) reinterpret_cast<end*>(f)->cq = reinterpret_cast<queue*>(to);
  return 0;
}
int enable_end(fid* f, int, void*) {
  if (fails("enable")) return -FI_EIO;
  reinterpret_cast<end*>(f)->enabled = true;
  return 0;
}
int name_end(fid_t f, void* out, size_t* bytes) {
  if (fails("getname")) return -FI_EIO;
  *bytes = 8;
  std::memset(out, reinterpret_cast<end*>(f)->address, 8);
  return 0;
}
fi_ops g_end_ops{sizeof(fi_ops), close_end, bind_end, enable_end, nullptr, nullptr, nullptr};
fi_ops_cm g_cm{sizeof(fi_ops_cm), nullptr, name_end, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
fi_ops_rma g_rma{sizeof(fi_ops_rma), nullptr, nullptr, read_msg, nullptr, nullptr,
                 write_msg,          nullptr, nullptr, nullptr};
fi_ops_atomic g_atomic{
    sizeof(fi_ops_atomic), nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, fetch_msg, nullptr, nullptr,
    compare_msg,           nullptr, nullptr, nullptr};
int make_end(fid_domain*, fi_info*, fid_ep** out, void*) {
  if (fails("endpoint")) return -FI_EBUSY;
  auto* e = new end{};
  e->fid.ops = &g_end_ops;
  e->cm = &g_cm;
  e->rma = &g_rma;
  e->atomic = &g_atomic;
  e->address = ++g_ends;
  *out = e;
  return 0;
}

int insert(fid_av*, const void*, size_t, fi_addr_t* out, uint64_t, void*) {
  *out = 0;
  return fails("insert") ? 0 : 1;
}
fi_ops_av g_av_ops{sizeof(fi_ops_av), insert, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
fid_av g_av{{0, nullptr, &g_plain}, &g_av_ops};
int make_av(fid_domain*, fi_av_attr*, fid_av** out, void*) { return *out = &g_av, fails("av_open") ? -FI_EIO : 0; }

fi_ops_domain g_domain_ops{sizeof(fi_ops_domain),
                           make_av,
                           make_queue,
                           make_end,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr,
                           nullptr};
fid_domain g_domain{{0, nullptr, &g_plain}, &g_domain_ops, &g_mr};
int make_domain(fid_fabric*, fi_info*, fid_domain** out, void*) {
  return *out = &g_domain, fails("domain") ? -FI_ENODEV : 0;
}
fi_ops_fabric g_fabric_ops{sizeof(fi_ops_fabric), make_domain, nullptr, nullptr, nullptr, nullptr, nullptr};
fid_fabric g_fabric{{0, nullptr, &g_plain}, &g_fabric_ops, 0};

struct all_of_info {
  fi_info info{};
  fi_tx_attr tx{};
  fi_rx_attr rx{};
  fi_ep_attr ep{};
  fi_domain_attr domain{};
  fi_fabric_attr fabric{};
  fid_nic nic{};
  fi_bus_attr bus{};
};
void join(all_of_info& a) {
  a.info.next = nullptr;
  a.info.tx_attr = &a.tx;
  a.info.rx_attr = &a.rx;
  a.info.ep_attr = &a.ep;
  a.info.domain_attr = &a.domain;
  a.info.fabric_attr = &a.fabric;
  if (a.bus.bus_type != FI_BUS_PCI) return;
  a.nic.bus_attr = &a.bus;
  a.info.nic = &a.nic;
}
char* text(const char* t) { return t != nullptr ? strdup(t) : nullptr; }

void on_fault(int) {}
// As constructors of real libraries do.
__attribute__((constructor)) void take_handlers() { signal(SIGSEGV, on_fault); }

}  // namespace

extern "C" {
#define SHOWN __attribute__((visibility("default")))
// The versions of the true library's symbols (tests/unit/fake_libfabric.map); or one that nobody knows.
#ifdef XIO_OTHER_INTERFACE
#define NODE "FABRIC_9.9"
#elif FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION) >= FI_VERSION(1, 20)
#define NODE "FABRIC_1.7"
#else
#define NODE "FABRIC_1.3"
#endif
__asm__(".symver fi_getinfo, fi_getinfo@@" NODE);
__asm__(".symver fi_freeinfo, fi_freeinfo@@" NODE);
__asm__(".symver fi_dupinfo, fi_dupinfo@@" NODE);

SHOWN uint32_t fi_version(void) { return mood("old") != nullptr ? FI_VERSION(1, 9) : FI_VERSION(1, 17); }
SHOWN const char* fi_strerror(int err) { return err == FI_EAGAIN ? "try again" : strerror(err); }
SHOWN int fi_fabric(fi_fabric_attr*, fid_fabric** out, void*) {
  return *out = &g_fabric, fails("fabric") ? -FI_EIO : 0;
}
SHOWN fi_info* fi_dupinfo(const fi_info* from) {
  auto* a = new all_of_info{};
  if (from != nullptr) {
    a->info = *from;
    a->tx = *from->tx_attr;
    a->rx = *from->rx_attr;
    a->ep = *from->ep_attr;
    a->domain = *from->domain_attr;
    a->fabric = *from->fabric_attr;
    if (from->nic != nullptr) a->bus = *from->nic->bus_attr;
    a->domain.name = text(from->domain_attr->name);
    a->fabric.prov_name = text(from->fabric_attr->prov_name);
  }
  join(*a);
  return &a->info;
}
SHOWN void fi_freeinfo(fi_info* i) {
  while (i != nullptr) {
    fi_info* const next = i->next;
    std::free(i->domain_attr->name);
    std::free(i->fabric_attr->prov_name);
    delete reinterpret_cast<all_of_info*>(i);
    i = next;
  }
}
// One of several NICs, each on a bus of its own.
fi_info* nth_of(int nth, const fi_info* hints) {
  fi_info* i = fi_dupinfo(nullptr);
  i->caps = hints->caps;
  i->fabric_attr->prov_name = text("cxi");
  const bool is_lo = mood("lo") != nullptr && nth == 0;
  i->domain_attr->name =
      mood("nameless") != nullptr ? nullptr : text(is_lo ? "lo" : ("cxi" + std::to_string(nth)).c_str());
  i->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
  i->domain_attr->mr_key_size = 4;
  i->domain_attr->av_type = FI_AV_TABLE;
  i->tx_attr->size = k_tx;
  i->tx_attr->msg_order = i->rx_attr->msg_order = hints->tx_attr->msg_order;
  i->ep_attr->max_msg_size = 1 << 20;
  i->ep_attr->max_order_waw_size = mood("short_order") != nullptr ? 1024 : SIZE_MAX;
  auto* a = reinterpret_cast<all_of_info*>(i);
  if (mood("lo") != nullptr) return i;
  a->bus.bus_type = FI_BUS_PCI;
  a->bus.attr.pci = {0, static_cast<std::uint8_t>(0x20 + nth), 0, 0};
  join(*a);
  return i;
}
SHOWN int fi_getinfo(uint32_t, const char*, const char*, uint64_t, const fi_info* hints, fi_info** out) {
  if (fails("getinfo")) return -FI_EIO;
  if (std::string(hints->fabric_attr->prov_name) != "cxi") return -FI_ENODATA;
  if (mood("unordered") != nullptr && hints->tx_attr->msg_order != 0) return -FI_ENODATA;
  const bool hmem = (hints->caps & FI_HMEM) != 0;
  if (hmem && (mood("hmem") == nullptr || (hints->domain_attr->mr_mode & FI_MR_HMEM) == 0)) return -FI_ENODATA;
  const char* nics = mood("nics");
  *out = nullptr;
  for (int nth = nics != nullptr ? std::atoi(nics) : 1; nth-- != 0;) {
    fi_info* const i = nth_of(nth, hints);
    i->next = *out;
    *out = i;
  }
  return 0;
}
}
