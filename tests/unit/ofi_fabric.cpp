// SPDX-License-Identifier: MIT
// Mistakes of a libfabric's provider, on one that makes them on request (fake_libfabric.cpp): each case in a process
// of its own, because a process has one libfabric.
#include "proxy/ofi_fabric.hpp"
#include "../gtest.hpp"
#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "transport/rdma/libfabric.hpp"

namespace {

using namespace xio::proxy;
namespace ofi = xio::proxy::ofi;

std::vector<std::uint32_t> g_immediates;
std::uint64_t g_room = 0;  // immediates in all

// Once g_on_gpu is set, all memory is said to be a GPU's, in an allocation that begins g_before bytes before it.
bool g_on_gpu = false;
std::size_t g_before = 0;
xio::gpu::location on_gpu(const void* at) {
  xio::gpu::location l;
  if (!g_on_gpu) return l;
  l.where = xio::gpu::residence::device;
  l.device = 3;
  l.base = static_cast<unsigned char*>(const_cast<void*>(at)) - g_before;
  return l;
}

std::unique_ptr<ofi_fabric> open_fake(const std::string& provider = "cxi", const char* library = XIO_FAKE_LIBFABRIC,
                                      fi_hmem_iface gpu = FI_HMEM_SYSTEM) {
  ofi_settings s;
  s.gpu = gpu;
  s.patience = std::chrono::milliseconds(50);
  s.rnr_retries = 3;
  s.on_immediate = [](std::uint32_t, std::uint32_t immediate, std::uint64_t) {
    g_immediates.push_back(immediate);
    return true;
  };
  s.room = [](std::uint32_t) { return g_room; };
  s.locate = on_gpu;
  auto all = ofi::list_domains({library, provider, gpu});
  return std::make_unique<ofi_fabric>(xio::gpu::payload(), ofi::load_library(library), std::move(all[0]), s);
}

// A queue pair to itself, and 64 KiB.
struct pair {
  explicit pair(ofi_fabric& f, std::uint32_t allowed = 31) : on(f), words(8192) {
    keys = f.register_memory(words.data(), words.size() * 8, allowed);
    const auto mine = f.get_queue_address(k_number, 0);
    by = f.connect(k_number, 0, mine, k_number);
  }
  ~pair() {
    by.reset();
    on.forget(k_number);
    on.unregister_memory(keys);
  }
  xio::proxy::op make(verb what, std::size_t from, std::size_t to, std::uint32_t bytes) const {
    xio::proxy::op o;
    o.what = what;
    o.signalled = true;
    o.bytes = bytes;
    o.span_count = 1;
    o.spans[0] = {reinterpret_cast<std::uint64_t>(&words[from]), bytes, keys.lkey};
    o.remote = reinterpret_cast<std::uint64_t>(&words[to]);
    o.remote_key = keys.rkey;
    return o;
  }
  // Hands over, and goes on until one op has ended; none within 300 ms: outcome::flushed.
  op_error carry_out(const xio::proxy::op& o) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    op_error how{outcome::flushed, rule::none};
    bool begun = by->begin(o);
    while (std::chrono::steady_clock::now() < until) {
      on.poll();
      begun = begun || by->begin(o);
      by->advance(1);
      if (by->ended(&how)) return how;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return how;
  }
  static constexpr std::uint32_t k_number = 100;
  ofi_fabric& on;
  std::vector<std::uint64_t> words;
  key_pair keys{};
  std::unique_ptr<xio::proxy::executor> by;
};

void say(const op_error& e) {
  fprintf(stderr, "outcome %d rule %d\n", static_cast<int>(e.what), static_cast<int>(e.why));
}

// --- Acts on an open fabric ------------------------------------------------------------------

void set_mood(const char* words) { setenv("FAKE_LIBFABRIC", words, 1); }

void write_in(const char* words) {
  auto f = open_fake();
  pair p(*f);
  set_mood(words);
  say(p.carry_out(p.make(verb::write, 0, 100, 64)));
  set_mood("");
}
void write_to(std::uint64_t beyond, std::uint32_t key, std::uint32_t allowed) {
  auto f = open_fake();
  pair p(*f, allowed);
  auto o = p.make(verb::write, 0, 100, 64);
  o.remote += beyond;
  o.remote_key ^= key;
  say(p.carry_out(o));
}
// The NIC that a PE of a machine takes, of several that are equally near.
void take_nic(int local_rank, const char* list, bool apart = false) {
  xio::rdma_options o;
  o.fabric_library = XIO_FAKE_LIBFABRIC;
  o.hca_list = list;
  for (const auto& f : xio::rdma::open_libfabric(o, xio::gpu::payload(), {0, 1, local_rank, {}, {}, apart}).fabrics)
    fprintf(stderr, "takes %s\n", f->name());
}
// GPU memory of an interface, with the variables given.
void gpu_write(fi_hmem_iface gpu, std::size_t before = 0, const char* variable = nullptr, const char* value = "0") {
  if (variable != nullptr) setenv(variable, value, 1);
  auto f = open_fake("cxi", XIO_FAKE_LIBFABRIC, gpu);
  g_on_gpu = true;
  g_before = before;
  pair p(*f);
  say(p.carry_out(p.make(verb::write, 0, 100, 64)));
  say(p.carry_out(p.make(verb::read, 0, 100, 64)));
}
void atomic_with(std::uint64_t boundary, std::uint64_t off) {
  auto f = open_fake();
  pair p(*f);
  auto o = p.make(verb::atomic, 0, 100, 8);
  o.change = {true, 8, 1, boundary, 0, 0, 0, false};
  o.remote += off;
  say(p.carry_out(o));
}
// Many at once, of all kinds, to a provider that ends them in another order: memory must be as if it had not.
void storm(const char* words) {
  auto f = open_fake();
  pair p(*f);
  set_mood(words);
  constexpr std::uint64_t rounds = 500;
  std::uint64_t begun = 0, ended = 0;
  op_error how;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (ended != 2 * rounds && std::chrono::steady_clock::now() < until) {
    if (begun != 2 * rounds) {
      auto o = p.make(begun % 2 == 0 ? verb::write : verb::atomic, begun % 64, begun % 2 == 0 ? 100 : 2000, 8);
      o.change = {true, 8, 1, 0, 0, 0, 0, false};
      if (begun % 2 == 0) p.words[begun % 64] = begun;
      begun += p.by->begin(o) ? 1 : 0;
    }
    f->poll();
    p.by->advance(1);
    while (p.by->ended(&how)) ++ended;
    if (how) break;
  }
  fprintf(stderr, "ended %d sum %d last %d\n", static_cast<int>(ended), static_cast<int>(p.words[2000]),
          static_cast<int>(p.words[100]));
  say(how);
  set_mood("");
}
// 200 immediates to itself, by an inbox with room for some of them.
void immediates(std::uint64_t room) {
  auto f = open_fake();
  g_room = room;
  pair p(*f);
  op_error how;
  for (std::uint32_t i = 0; i < 200 && !how; ++i) {
    auto o = p.make(verb::write, 0, 100, 64);
    o.has_immediate = true;
    o.immediate = i;
    how = p.carry_out(o);
  }
  bool right = true;
  for (std::uint32_t i = 0; i < g_immediates.size(); ++i) right &= g_immediates[i] == i;
  for (int i = 0; i < 5; ++i) f->poll();
  fprintf(stderr, "taken %d %s\n", static_cast<int>(g_immediates.size()), right ? "in order" : "not in order");
  say(how);
}
// A queue pair goes while its op is under way, and the provider is alive again later.
void leave_behind() {
  auto f = open_fake();
  {
    pair p(*f);
    set_mood("mute");
    say(p.carry_out(p.make(verb::read, 0, 100, 64)));
    set_mood("");
  }
  pair again(*f);
  say(again.carry_out(again.make(verb::write, 0, 100, 64)));
}
void keep_handlers() {
  auto f = open_fake();
  struct sigaction now {};
  sigaction(SIGSEGV, nullptr, &now);
  fprintf(stderr, "handler %s\n", now.sa_handler == SIG_DFL ? "kept" : "lost");
}
void connect_to(std::size_t cut, std::size_t at, int flip) {
  auto f = open_fake();
  std::vector<xio::proxy::device_address> all{f->get_address()};
  all[0].resize(all[0].size() - cut);
  if (flip != 0) all[0][at] ^= static_cast<std::byte>(flip);
  f->connect_peers(all);
}
void open_only() { open_fake(); }

struct row {
  const char* mood;
  std::function<void()> act;
  const char* expected;  // a regular expression of what is said
};

// In the child: an exception becomes a sentence on standard error.
[[noreturn]] void play(const row& r) {
  setenv("FAKE_LIBFABRIC", r.mood, 1);
  xio::log::set_level(xio::log::level::info);
  const xio_status_t status = xio::guard(r.act);
  if (status != XIO_OK) fprintf(stderr, "status %s: %s\n", xio_status_name(status), xio::last_error());
  fprintf(stderr, "played\n");
  _exit(0);
}

#define FAILS(call, words) \
  { "fail=" call, open_only, "status XIO_ERR_IO: cxi0 of cxi by libfabric 1.17 cannot " words }

const row k_rows[] = {
    {"", [] { write_in(""); }, "atomics of 8 bytes and 4 bytes, with masks, order as announced(.|\n)*outcome 0 rule 0"},
    {"", keep_handlers, "handler kept"},
    // Libraries, providers and variables that are refused.
    {"", [] { open_fake("cxi", "/nowhere/libfabric.so"); }, "XIO_ERR_UNSUPPORTED: .*cannot load /nowhere/libfabric.so"},
    {"", [] { open_fake("cxi", "libm.so.6"); }, "XIO_ERR_UNSUPPORTED: .*another binary interface.*fi_version"},
    {"", [] { open_fake("cxi", XIO_OTHER_LIBFABRIC); },
     "XIO_ERR_UNSUPPORTED: .*another binary interface.*fi_getinfo@FABRIC"},
    {"old", open_only, "XIO_ERR_UNSUPPORTED: libfabric 1.9 .*too old"},
    {"", [] { open_fake("nosuch"); }, "XIO_ERR_UNSUPPORTED: .*no provider 'nosuch'"},
    {"", [] { open_fake("efa"); }, "XIO_ERR_UNSUPPORTED: .*EFA delivers writes in any order"},
    {"", [] { open_fake("shm"); }, "XIO_ERR_UNSUPPORTED: .*XIO_NIC_EXECUTOR=shm"},
    {"fail=getinfo", open_only, "XIO_ERR_UNSUPPORTED: .*no provider 'cxi'.*SLINGSHOT_VNIS"},
    {"nameless", open_only, "XIO_ERR_UNSUPPORTED: .*no provider 'cxi'"},
    {"", [] { setenv("FI_PROVIDER", "tcp,sockets", 1), open_fake(); },
     "XIO_ERR_CONFIG: FI_PROVIDER=tcp,sockets leaves out cxi"},
    {"", [] { setenv("FI_PROVIDER", "^cxi", 1), open_fake(); }, "XIO_ERR_CONFIG: FI_PROVIDER=.cxi leaves out cxi"},
    {"", [] { setenv("FI_PROVIDER", "^tcp", 1), write_in(""); }, "outcome 0 rule 0"},
    {"", [] { setenv("FI_MR_CACHE_MONITOR", "memhooks", 1), open_fake(); },
     "XIO_ERR_CONFIG: FI_MR_CACHE_MONITOR=memhooks"},
    FAILS("fabric", "open its fabric"),
    FAILS("domain", "open its domain .is there a CXI service"),
    FAILS("av_open", "make a table of peers"),
    FAILS("cq_open", "make a completion queue"),
    FAILS("endpoint", "make an endpoint"),
    FAILS("bind", "start an endpoint"),
    FAILS("enable", "start an endpoint"),
    FAILS("getname", "say its address"),
    FAILS("insert", "take a peer's address"),
    FAILS("mr_bind", "bind memory"),
    FAILS("mr_enable", "enable memory"),
    {"fail=mr_reg", open_only, "XIO_ERR_NO_MEMORY: .*cannot register .*ulimit -l"},
    {"no_key", open_only, "XIO_ERR_IO: .*cannot register"},
    // Providers that do not do what they announce.
    {"stubs", open_only,
     "XIO_ERR_UNSUPPORTED: libfabric cxi cxi0: atomics of 8 bytes to this PE itself do something else"},
    {"wrong=8", open_only, "XIO_ERR_UNSUPPORTED: .*atomics of 8 bytes to this PE itself do something else"},
    {"early", open_only, "XIO_ERR_UNSUPPORTED: .*complete before their data have arrived"},
    {"mute", open_only, "XIO_ERR_UNSUPPORTED: .*writes to this PE itself do not end"},
    {"code=36", open_only, "XIO_ERR_UNSUPPORTED: .*writes to this PE itself fail"},
    {"fail=readmsg", open_only, "XIO_ERR_UNSUPPORTED: .*reads to this PE itself fail"},
    {"wrong=4", [] { write_in(""); }, "atomics of 8 bytes, with masks(.|\n)*outcome 0 rule 0"},
    {"wrong_masks", [] { write_in(""); }, "atomics of 8 bytes and 4 bytes, order(.|\n)*outcome 0 rule 0"},
    {"disordered", [] { storm("disordered"); },
     "does not keep the order(.|\n)*ended 1000 sum 500 last 998(.|\n)*outcome 0"},
    {"unordered,disordered", [] { storm("unordered,disordered"); }, "ended 1000 sum 500 last 998(.|\n)*outcome 0"},
    {"short_order,backwards", [] { storm("backwards"); }, "ended 1000 sum 500 last 998(.|\n)*outcome 0"},
    {"", [] { storm("foreign"); }, "no message under way(.|\n)*ended 1000 sum 500 last 998(.|\n)*outcome 0"},
    // Failures after the opening.
    {"", [] { write_in("fail=writemsg"); }, "outcome 2 rule 0"},
    {"", [] { write_in("again"); }, "outcome 8 rule 26"},
    {"", [] { write_in("mute"); }, "outcome 4 rule 0"},
    {"", [] { write_in("cq_lost"); }, "completions cannot be read(.|\n)*outcome 2 rule 0"},
    {"", [] { write_in("code=2"); }, "outcome 8 rule 26"},
    {"", [] { write_in("code=5"); }, "outcome 6 rule 27"},
    {"", [] { write_in("code=26"); }, "outcome 8 rule 26"},
    // NICs of a machine.
    {"nics=4", [] { take_nic(0, ""); }, "takes libfabric cxi cxi0\nplayed"},
    {"nics=3,lo", [] { take_nic(2, ""); }, "takes libfabric cxi cxi1\nplayed"},
    {"nics=1,lo", [] { take_nic(0, ""); }, "takes libfabric cxi lo\nplayed"},
    {"nics=1,lo", [] { take_nic(0, "", true); }, "PE 0 has the loopback interface alone for cxi"},
    {"nics=4", [] { take_nic(6, ""); }, "takes libfabric cxi cxi2\nplayed"},
    {"nics=4", [] { take_nic(1, "cxi3,cxi1"); }, "takes libfabric cxi cxi1\ntakes libfabric cxi cxi3\nplayed"},
    {"nics=3", [] { take_nic(0, "^cxi0"); }, "takes libfabric cxi cxi1\ntakes libfabric cxi cxi2\nplayed"},
    {"nics=2", [] { take_nic(0, "cxi7"); },
     "XIO_ERR_CONFIG: XIO_HCA_LIST=cxi7 names no domain of cxi; there are cxi0, cxi1"},
    // GPU memory: offered, of which runtime, inside an allocation, refused, lost.
    {"hmem", [] { gpu_write(FI_HMEM_ROCR); },
     ", GPU memory\n(.|\n)*of interface 2\n(.|\n)*outcome 0 rule 0\noutcome 0 rule 0"},
    {"hmem", [] { gpu_write(FI_HMEM_CUDA, 4096); }, "of interface 1\n(.|\n)*outcome 0 rule 0\noutcome 0 rule 0"},
    {"hmem", [] { gpu_write(FI_HMEM_SYSTEM); }, "as announced\n(.|\n)*outcome 0 rule 0\noutcome 0 rule 0"},
    {"", [] { gpu_write(FI_HMEM_ROCR); },
     ", no GPU memory\n(.|\n)*XIO_ERR_UNSUPPORTED: .* are GPU memory, and .* registers host memory alone; set "
     "XIO_HEAP_KIND=host"},
    {"hmem,unordered", [] { gpu_write(FI_HMEM_ROCR); }, ", GPU memory\n(.|\n)*of interface 2\n(.|\n)*outcome 0 rule 0"},
    {"hmem,fail=gpu", [] { gpu_write(FI_HMEM_ROCR); },
     "XIO_ERR_IO: .*cannot register .* of GPU memory: .*FI_HMEM_ROCR_USE_DMABUF=0.*XIO_HEAP_KIND=host"},
    {"hmem,fail=gpu", [] { gpu_write(FI_HMEM_CUDA); }, "XIO_ERR_IO: .* of GPU memory: .*nvidia-peermem"},
    {"hmem", [] { gpu_write(FI_HMEM_ROCR, 0, "FI_MR_CACHE_MAX_COUNT"); }, "outcome 0 rule 0\noutcome 0 rule 0"},
    {"hmem", [] { gpu_write(FI_HMEM_ROCR, 4096, "FI_MR_CACHE_MAX_COUNT"); },
     "XIO_ERR_CONFIG: .* inside an allocation of the GPU .* with FI_MR_CACHE_MAX_COUNT=0 libfabric"},
    {"hmem", [] { gpu_write(FI_HMEM_ROCR, 4096, "FI_MR_ROCR_CACHE_MONITOR_ENABLED"); },
     "XIO_ERR_CONFIG: .* with FI_MR_ROCR_CACHE_MONITOR_ENABLED=0 libfabric"},
    {"hmem", [] { gpu_write(FI_HMEM_ROCR, 4096, "FI_MR_ROCR_CACHE_MONITOR_ENABLED", "1"); }, "outcome 0 rule 0"},
    {"", [] { write_in("code=36"); }, "has lost memory that was registered(.|\n)*outcome 7 rule 27"},
    {"", [] { write_to(0, 1, 31); }, "outcome 6 rule 17"},
    {"", [] { write_to(1 << 20, 0, 31); }, "outcome 6 rule 18"},
    {"", [] { write_to(0, 0, 1 | 2 | 4); }, "outcome 6 rule 19"},
    {"", [] { atomic_with(0, 4); }, "outcome 5 rule 20"},
    {"", [] { atomic_with(0xff00ff00, 0); }, "outcome 7 rule 6"},
    {"", [] { immediates(200); }, "taken 200 in order(.|\n)*outcome 0"},
    {"", [] { immediates(3); }, "taken 3 in order(.|\n)*outcome 9"},
    {"", leave_behind, "outcome 4 rule 0(.|\n)*outcome 0 rule 0"},
    // Addresses of peers.
    {"", [] { connect_to(0, 0, 0); }, "played"},
    {"", [] { connect_to(0, 0, 1); }, "XIO_ERR_PEER: PE 0 sent no address of the libfabric carrier"},
    {"", [] { connect_to(1, 0, 0); }, "XIO_ERR_PEER: PE 0 sent an address that is cut"},
    {"", [] { connect_to(0, 8, 4); }, "XIO_ERR_PEER: PE 0 sent an address that is cut"},
    {"", [] { connect_to(0, 12, 1); }, "XIO_ERR_PEER: PE 0 sent another PE's address"},
    {"", [] { connect_to(0, 16, 1); }, "XIO_ERR_PEER: PE 0 sent the address of another provider"},
};

TEST(ofi_fabric, says_what_a_provider_does_wrong) {
  int at = 0;
  for (const row& r : k_rows) {
    SCOPED_TRACE(testing::Message() << "row " << at++ << " '" << r.mood << "', wanted: " << r.expected);
    EXPECT_EXIT(play(r), testing::ExitedWithCode(0), r.expected);
  }
}

TEST(ofi_fabric, order_that_the_manual_takes_back_is_not_believed) {
  const auto all = ~std::uint64_t{0};
  const auto w = static_cast<std::size_t>(ofi::kind::write), r = static_cast<std::size_t>(ofi::kind::read),
             a = static_cast<std::size_t>(ofi::kind::atomic);
  EXPECT_TRUE(ofi::order_of(all, "sockets")[w][r]);
  EXPECT_FALSE(ofi::order_of(all, "cxi")[w][r]);
  EXPECT_TRUE(ofi::order_of(all, "cxi")[w][a]);
  EXPECT_FALSE(ofi::order_of(FI_ORDER_RMA_WAW, "tcp;ofi_rxm")[w][a]);
  EXPECT_TRUE(ofi::order_of(FI_ORDER_RMA_WAW, "tcp;ofi_rxm")[w][w]);
}

}  // namespace
