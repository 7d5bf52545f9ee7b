// SPDX-License-Identifier: MIT
// The UCX channel: every rank sends its part to every other rank, sealed, with a tag that only the two know.
#include "config.h"

#include "bootstrap/launcher.hpp"
#include "bootstrap/pmi2.hpp"

#ifdef HAVE_UCX
#include <dlfcn.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/error.hpp"
#include "base/kept_handlers.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/pair_seals.hpp"
#include "bootstrap/pairwise.hpp"

namespace xio::bootstrap {

namespace {

// --- The library -------------------------------------------------------------------------------------

// UCX is loaded when its bootstrap is asked for: its constructors take the process's handlers of SIGSEGV and others, so
// no program gets them for the mere reason that it is linked with libxio. Code here calls UCX's functions by their own
// names, and gets these pointers. Every function that is used; another one goes here first.
// clang-format off
#define XIO_UCX_FUNCTIONS(X) \
  X(ucp_init_version) X(ucp_cleanup) X(ucp_config_read) X(ucp_config_modify) X(ucp_config_release) \
  X(ucp_worker_create) X(ucp_worker_destroy) X(ucp_worker_progress) X(ucp_worker_get_address) \
  X(ucp_worker_release_address) X(ucp_ep_create) X(ucp_ep_close_nbx) X(ucp_tag_send_nbx) X(ucp_tag_recv_nbx) \
  X(ucp_tag_recv_request_test) X(ucp_request_check_status) X(ucp_request_cancel) X(ucp_request_free) \
  X(ucs_status_string)
// clang-format on

#define XIO_DEFINE(name) decltype(&::name) name = nullptr;
XIO_UCX_FUNCTIONS(XIO_DEFINE)
#undef XIO_DEFINE

// The header's own is inline and calls the library. An object, since a function here would not hide that one.
constexpr auto ucp_init = [](const ucp_params_t* params, const ucp_config_t* config, ucp_context_h* context) {
  return ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, params, config, context);
};

constexpr const char* k_library = "libucp.so.0";  // UCX's one binary interface since 1.0

void* open_library() {
  const kept_handlers keep(kept_handlers::which::all);
  return dlopen(k_library, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
void find(void* library, const char* name, Function& out) {
  void* found = dlsym(library, name);
  if (found == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "the UCX bootstrap: {} has no function {}; install the UCX that libxio was built with, {}.{} or newer, or "
         "choose another XIO_BOOTSTRAP",
         k_library, name, UCP_API_MAJOR, UCP_API_MINOR);
  std::memcpy(&out, &found, sizeof out);
}

// Before any of them. Keeps the signal handlers that the process has, unless UCX_HANDLE_ERRORS asks for UCX's. Throws
// XIO_ERR_UNSUPPORTED where the library is not installed or lacks a function. Never unloaded: UCX leaves hooks of its
// own in the process.
void load_ucx() {
  static std::mutex lock;
  static bool loaded = false;
  const std::lock_guard hold(lock);
  if (loaded) return;
  void* library = open_library();
  if (library == nullptr) {
    const char* why = dlerror();
    fail(XIO_ERR_UNSUPPORTED,
         "the UCX bootstrap cannot load {}: {}; install UCX (on Debian libucx0), or choose another XIO_BOOTSTRAP",
         k_library, why != nullptr ? why : "no reason given");
  }
#define XIO_FIND(name) find(library, #name, name);
  XIO_UCX_FUNCTIONS(XIO_FIND)
#undef XIO_FIND
  loaded = true;
}

// --- The channel -------------------------------------------------------------------------------------

constexpr std::uint64_t k_close_ms = 1000;    // for what is still on its way when a channel ends
constexpr unsigned k_events_at_once = 10000;  // between two looks at the clock
constexpr std::chrono::microseconds k_pause_most{200};
constexpr std::size_t k_address_most = 64 * 1024;  // of a worker; some hundred bytes a device

void check(ucs_status_t status, const char* what) {
  if (status != UCS_OK)
    fail(XIO_ERR_IO, "{} failed: {}; check UCX_TLS and UCX_NET_DEVICES, or choose another XIO_BOOTSTRAP", what,
         ucs_status_string(status));
}

struct peer {
  ucp_ep_h ep = nullptr;
  ucs_status_t failed = UCS_OK;  // set by UCX when the peer's connection is lost
};

void on_failure(void* arg, ucp_ep_h, ucs_status_t status) { static_cast<peer*>(arg)->failed = status; }

class ucx_channel final : public pairwise_channel {
 public:
  ucx_channel(const bootstrap_options& o, std::unique_ptr<channel> first)
      : pairwise_channel("UCX", o.timeout_ms),
        first_(std::move(first)),
        peers_(static_cast<std::size_t>(first_->size())),
        seals_(*first_) {
    try {
      start_together();
      make_endpoints();
      first_->barrier();  // nobody sends to a worker whose owner may still fail
    } catch (...) {
      close();
      throw;
    }
  }
  ~ucx_channel() override { close(); }

  int rank() const override { return first_->rank(); }
  int size() const override { return first_->size(); }
  const char* name() const override { return "ucx"; }
  void forsake() noexcept override {
    set_broken(error(XIO_ERR_PEER, "a rank of the UCX bootstrap has died"));
    first_->forsake();
  }
  void abort(int code) noexcept override { first_->abort(code); }
  std::string end_of(int rank) const override { return first_->end_of(rank); }
  // Messages by UCX are proven no better than those of `first`, from which the ranks have their keys.
  bool sealed() const override { return first_->sealed(); }
  std::shared_ptr<const world_keys> keys() override { return first_->keys(); }

 private:
  cells swap(cells mine, std::span<const std::size_t> in_sizes) override {
    // UCX may write to it until its requests are complete, so it outlives a round that failed.
    current_ = std::make_unique<round>(std::move(mine), in_sizes);
    start(*current_);
    await(*current_);
    return std::move(std::exchange(current_, nullptr)->in);
  }

  struct round {
    round(cells given, std::span<const std::size_t> in_sizes)
        : mine(std::move(given)),
          in(in_sizes),
          sealed_out(in_sizes.size()),
          sealed_in(in_sizes.size()),
          sends(in_sizes.size()),
          receives(in_sizes.size()) {}
    const cells mine;
    cells in;
    std::vector<std::vector<std::byte>> sealed_out, sealed_in;
    std::vector<void*> sends, receives;  // null: complete
  };

  // If one rank cannot start UCX, all ranks fail with that rank's sentence.
  void start_together() {
    struct report {
      std::int32_t status;
      char sentence[252];
    } mine{};
    try {
      load_ucx();
      // UCX ends the process when it can make no thread of its own.
      start_thread("UCX", [] {}).join();
      make_worker();
    } catch (const error& e) {
      mine.status = e.status();
      std::strncpy(mine.sentence, e.what(), sizeof mine.sentence - 1);
    }
    const auto all = allgather_value(*first_, mine);
    if (mine.status != XIO_OK) fail(static_cast<xio_status_t>(mine.status), "{}", mine.sentence);
    for (std::size_t r = 0; r < all.size(); ++r)
      if (all[r].status != XIO_OK)
        fail(XIO_ERR_PEER, "rank {}: {}", r,
             std::string_view(all[r].sentence, strnlen(all[r].sentence, sizeof all[r].sentence)));
  }

  void make_worker() {
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "reading UCX's configuration");
    // How soon the death of a peer is noticed when nothing is being sent to it; UCX's own default is 20 s.
    if (std::getenv("UCX_KEEPALIVE_INTERVAL") == nullptr) ucp_config_modify(config, "KEEPALIVE_INTERVAL", "1s");
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    const auto status = ucp_init(&params, config, &context_);
    ucp_config_release(config);
    check(status, "ucp_init");
    ucp_worker_params_t w{};
    w.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    w.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    check(ucp_worker_create(context_, &w, &worker_), "ucp_worker_create");
  }

  void make_endpoints() {
    ucp_address_t* address = nullptr;
    std::size_t length = 0;
    check(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
    const auto* bytes = reinterpret_cast<const std::byte*>(address);
    std::vector<std::byte> mine(bytes, bytes + length);
    ucp_worker_release_address(worker_, address);

    const cells all = allgather_unequal(*first_, mine, k_address_most);
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (static_cast<int>(r) == rank()) continue;
      ucp_ep_params_t p{};
      p.field_mask =
          UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
      p.address = reinterpret_cast<const ucp_address_t*>(all[r].data());
      p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
      p.err_handler.cb = on_failure;
      p.err_handler.arg = &peers_[r];
      check(ucp_ep_create(worker_, &p, &peers_[r].ep), "ucp_ep_create");
    }
  }

  void start(round& x) {
    const auto us = static_cast<std::size_t>(rank());
    ucp_request_param_t receive{};
    receive.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    ucp_request_param_t send{};
    for (std::size_t step = 0; step < peers_.size(); ++step) {
      const std::size_t r = (us + step) % peers_.size();
      if (r == us) {
        const auto own = x.mine[r];
        std::copy(own.begin(), own.end(), x.in[r].begin());
        continue;
      }
      const int pe = static_cast<int>(r);
      auto& in = x.sealed_in[r];
      auto& out = x.sealed_out[r];
      in.resize(x.in[r].size() + pair_seals::k_bytes);
      out = seals_.seal(pe, number(), x.mine[r]);
      x.receives[r] = posted(
          ucp_tag_recv_nbx(worker_, in.data(), in.size(), seals_.tag_from(pe, number()), ~ucp_tag_t{0}, &receive), r);
      if (peers_[r].failed != UCS_OK) continue;  // await() says so
      x.sends[r] =
          posted(ucp_tag_send_nbx(peers_[r].ep, out.data(), out.size(), seals_.tag_to(pe, number()), &send), r);
    }
  }

  void* posted(ucs_status_ptr_t request, std::size_t r) {
    if (!UCS_PTR_IS_ERR(request)) return request;
    if (peers_[r].failed == UCS_OK) peers_[r].failed = UCS_PTR_STATUS(request);
    return nullptr;
  }

  void await(round& x) {
    const auto until = end_of_round();
    auto pause = std::chrono::microseconds(1);
    for (;;) {
      unsigned events = 0;
      // Everything that has arrived counts before a lost connection does: a peer may send its part and leave.
      for (unsigned n = 1; n != 0 && events < k_events_at_once; events += n) n = ucp_worker_progress(worker_);
      bool all = true;
      for (std::size_t r = 0; r < peers_.size(); ++r) all = advance(x, r) && all;
      if (all) return;
      if (until.passed()) fail_silent(x);
      pause = events != 0 ? std::chrono::microseconds(1) : std::min(2 * pause, k_pause_most);
      if (events == 0) std::this_thread::sleep_for(pause);
    }
  }

  bool advance(round& x, std::size_t r) {
    if (x.receives[r] != nullptr) {
      ucp_tag_recv_info_t info{};
      const auto status = ucp_tag_recv_request_test(x.receives[r], &info);
      if (status == UCS_INPROGRESS && peers_[r].failed != UCS_OK)
        fail(XIO_ERR_PEER, "rank {} is gone: {}; see its output for the cause", r, ucs_status_string(peers_[r].failed));
      if (status == UCS_INPROGRESS) return false;
      ucp_request_free(std::exchange(x.receives[r], nullptr));
      if (status == UCS_ERR_MESSAGE_TRUNCATED || (status == UCS_OK && info.length != x.sealed_in[r].size()))
        fail(XIO_ERR_ARG, "{}", text_of_other_size(r, x.in[r].size()));
      if (status != UCS_OK)
        fail(XIO_ERR_PEER, "receiving from rank {} failed: {}; see its output for the cause", r,
             ucs_status_string(status));
      if (!seals_.unseal(static_cast<int>(r), number(), x.sealed_in[r], x.in[r].data()))
        fail(XIO_ERR_AUTH,
             "what came as rank {}'s part of exchange {} is not rank {}'s: somebody meddles with the network", r,
             number(), r);
    }
    // A failed send after a complete receive: the peer has left, which is the next exchange's trouble.
    if (x.sends[r] != nullptr && ucp_request_check_status(x.sends[r]) != UCS_INPROGRESS)
      ucp_request_free(std::exchange(x.sends[r], nullptr));
    return x.sends[r] == nullptr;
  }

  [[noreturn]] void fail_silent(const round& x) const {
    std::string names;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (x.receives[r] != nullptr || x.sends[r] != nullptr)
        names += fmt::format("{}rank {}", names.empty() ? "" : ", ", r);
    fail(XIO_ERR_TIMEOUT, "{}", text_of_silent(names));
  }

  void close() {
    if (worker_ != nullptr) {
      close_endpoints();
      // Closing has completed the sends; receives that still wait are withdrawn.
      if (current_) {
        for (void*& r : current_->receives)
          if (r != nullptr) ucp_request_cancel(worker_, r);
        for (unsigned i = 0; i < k_events_at_once && ucp_worker_progress(worker_) != 0; ++i) continue;
        for (auto* list : {&current_->receives, &current_->sends})
          for (void*& r : *list)
            if (r != nullptr) ucp_request_free(std::exchange(r, nullptr));
      }
      ucp_worker_destroy(std::exchange(worker_, nullptr));
    }
    if (context_ != nullptr) ucp_cleanup(std::exchange(context_, nullptr));
  }

  void close_endpoints() {
    std::vector<void*> closing;
    for (auto& p : peers_) {
      if (p.ep == nullptr) continue;
      ucp_request_param_t param{};
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = is_broken() || p.failed != UCS_OK ? static_cast<unsigned>(UCP_EP_CLOSE_FLAG_FORCE) : 0U;
      void* request = ucp_ep_close_nbx(std::exchange(p.ep, nullptr), &param);
      if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
    }
    const auto until = deadline::in(k_close_ms);
    while (!closing.empty() && !until.passed()) {
      if (ucp_worker_progress(worker_) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
      std::erase_if(closing, [](void* request) {
        if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
        ucp_request_free(request);
        return true;
      });
    }
    for (void* request : closing) ucp_request_free(request);
  }

  std::unique_ptr<channel> first_;
  std::vector<peer> peers_;
  const pair_seals seals_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::unique_ptr<round> current_;
};

std::unique_ptr<channel> connect_first(const bootstrap_options& o) {
  switch (choose_way(o)) {
    case way::tcp: return connect_tcp(o);
    case way::mpi: return connect_mpi(o);
    case way::pmi2: return connect_pmi2(o);
    case way::none: break;
  }
  fail(
      XIO_ERR_CONFIG,
      "the UCX bootstrap has no way to exchange its first addresses; start with mpirun or xiorun, or set XIO_TCP_ROOT, "
      "XIO_TCP_RANK, XIO_TCP_SIZE and XIO_TCP_KEY");
}

}  // namespace

std::unique_ptr<channel> connect_ucx(const bootstrap_options& o) {
  return std::make_unique<ucx_channel>(o, connect_first(o));
}

}  // namespace xio::bootstrap

#else  // HAVE_UCX

namespace xio::bootstrap {
std::unique_ptr<channel> connect_ucx(const bootstrap_options&) {
  fail(XIO_ERR_UNSUPPORTED,
       "this libxio has no UCX bootstrap because it was built without UCX; install libucx-dev and configure again, or "
       "choose another XIO_BOOTSTRAP");
}
}  // namespace xio::bootstrap

#endif
