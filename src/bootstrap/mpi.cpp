// SPDX-License-Identifier: MIT
// The MPI channel. MPI is started if the program has not done so, and ended at the process's exit if XIO started it:
// MPI cannot be started twice in a process, and a program may call xio_init again after xio_finalize.
//
// When a PE dies, Open MPI's mpirun ends all the others; XIO_ERR_PEER is seen only where the launcher lets them live.
#include "config.h"

#include "bootstrap/launcher.hpp"

#ifdef HAVE_MPI
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/kept_handlers.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "bootstrap/deadline.hpp"
#include "bootstrap/mpi_library.hpp"
#include "bootstrap/pairwise.hpp"
#include "bootstrap/world_keys.hpp"

namespace xio::bootstrap {

namespace {

std::string mpi_text(const xio_mpi_calls_t& mpi, int code) {
  char text[512];
  mpi.text(code, text, sizeof text);
  return *text != '\0' ? text : fmt::format("MPI error {}", code);
}

// The MPI state that this process has started and not ended yet.
struct process_state {
  std::mutex lock;
  const xio_mpi_calls_t* mpi = nullptr;  // what XIO started MPI by
  int channels = 0;
  bool broken = false;  // an operation was left unfinished, so that MPI_Finalize could wait for ever
};

process_state& state() {
  static process_state one;
  return one;
}

void finalize_at_exit() {
  // A forked child that leaves by exit() has this handler, too, and its parent's connections.
  if (process::is_forked()) return;
  // With a world still open or broken, other ranks may wait in MPI for this one: leaving without MPI_Finalize lets
  // mpirun see that and end them.
  if (state().channels == 0 && !state().broken && !state().mpi->finalized()) state().mpi->finalize();
}

[[noreturn]] void refuse_without_launcher() {
  fail(XIO_ERR_CONFIG,
       "the MPI bootstrap needs a launcher, and neither mpirun's variables nor a running MPI were found; start with "
       "mpirun -np N, or set XIO_BOOTSTRAP=local for one PE");
}

void start_mpi(const xio_mpi_calls_t& mpi) {
  if (mpi.finalized() != 0)
    fail(XIO_ERR_STATE,
         "the MPI bootstrap cannot start because the program has called MPI_Finalize; call xio_init before it");
  if (mpi.initialized() == 0) {
    if (!started_by_mpirun()) refuse_without_launcher();
    const kept_handlers keep(kept_handlers::which::program);
    // Handlers run in reverse order: registered after MPI_Init_thread, this one runs before those of MPI.
    if (const int rc = mpi.start(); rc != 0)
      fail(XIO_ERR_IO, "MPI_Init_thread failed: {}; check the installation of MPI", mpi_text(mpi, rc));
    state().mpi = &mpi;
    std::atexit(finalize_at_exit);
    return;
  }
  if (mpi.may_be_called() == 0)
    fail(XIO_ERR_STATE,
         "the program started MPI without support for threads, and this thread did not start it; call xio_init from "
         "that thread or start MPI with MPI_THREAD_SERIALIZED");
}

class mpi_channel final : public pairwise_channel {
 public:
  mpi_channel(const xio_mpi_calls_t& mpi, const xio_mpi_handle_t& of, const bootstrap_options& o)
      : pairwise_channel("MPI", o.timeout_ms), mpi_(mpi), rank_(mpi.rank(&of)), size_(mpi.size(&of)) {
    // A communicator of its own keeps the channel's messages apart from the program's and from other worlds'.
    auto made = std::make_unique<xio_mpi_handle_t>();
    xio_mpi_handle_t request{};
    int rc = mpi_.begin_duplicate(&of, made.get(), &request);
    const bool done = wait([&] { return rc == 0 ? advance(request, rc) : true; });
    if (!done || rc != 0) {
      (void)made.release();  // MPI may still write to it
      if (!done) break_down(XIO_ERR_TIMEOUT, text_of_silent("some rank"));
      break_down(XIO_ERR_PEER, fmt::format("MPI_Comm_idup failed on rank {}: {}; see the other ranks' output", rank_,
                                           mpi_text(mpi_, rc)));
    }
    comm_ = *made;
    mpi_.return_errors(&comm_);
    std::lock_guard hold(state().lock);
    ++state().channels;
  }

  ~mpi_channel() override {
    std::lock_guard hold(state().lock);
    --state().channels;
    if (!is_broken() && mpi_.finalized() == 0) mpi_.free(&comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* name() const override { return "mpi"; }

  // MPI is not called any more, at exit neither.
  void forsake() noexcept override {
    set_broken(error(XIO_ERR_PEER, "a rank of the MPI bootstrap has died"));
    std::lock_guard hold(state().lock);
    state().broken = true;
  }

  void abort(int code) noexcept override {
    if (mpi_.finalized() == 0 && mpi_.may_be_called() != 0) mpi_.abort(&comm_, code);
  }

 private:
  void check_usable() const override {
    if (mpi_.finalized() != 0)
      fail(XIO_ERR_STATE, "the program has called MPI_Finalize while a world was open; call xio_finalize before it");
  }

  cells swap(cells mine, std::span<const std::size_t> in_sizes) override {
    auto x = std::make_unique<round>(mpi_, std::move(mine), in_sizes);
    start(x);
    std::optional<error> failure;
    const bool done = wait([&] {
      bool all = true;
      for (int peer = 0; peer < size_ && !failure; ++peer) all = advance(*x, peer, failure) && all;
      return all || failure.has_value();
    });
    if (done && !failure) return std::move(x->in);
    std::string missing;
    for (int peer = 0; peer < size_; ++peer)
      if (mpi_.is_complete(&x->receives[static_cast<std::size_t>(peer)]) == 0)
        missing += fmt::format("{}rank {}", missing.empty() ? "" : ", ", peer);
    (void)x.release();  // requests that are not complete cannot all be withdrawn: the buffers are MPI's for good
    if (failure) break_down(failure->status(), failure->what());
    break_down(XIO_ERR_TIMEOUT, text_of_silent(missing.empty() ? "some rank" : missing));
  }

  // Point to point and not MPI_Ialltoallv, which cannot say whom it waits for.
  struct round {
    round(const xio_mpi_calls_t& mpi, cells given, std::span<const std::size_t> in_sizes)
        : mine(std::move(given)), in(in_sizes), sends(in_sizes.size()), receives(in_sizes.size()) {
      for (auto* list : {&sends, &receives})
        for (xio_mpi_handle_t& request : *list) mpi.clear(&request);
    }
    const cells mine;
    cells in;
    std::vector<xio_mpi_handle_t> sends, receives;
  };

  static constexpr int k_tag = 0;
  static constexpr std::chrono::microseconds k_pause_most{200};

  void start(std::unique_ptr<round>& owned) {
    round& x = *owned;
    for (int step = 0; step < size_; ++step) {
      const int peer = (rank_ + step) % size_;  // not everybody to rank 0 at first
      const auto at = static_cast<std::size_t>(peer);
      const auto to = x.mine[at];
      const auto from = x.in[at];
      if (peer == rank_) {
        std::copy(to.begin(), to.end(), from.begin());
        continue;
      }
      // k_data_max fits an int.
      int rc = mpi_.receive(from.data(), static_cast<int>(from.size()), peer, k_tag, &comm_, &x.receives[at]);
      if (rc == 0) rc = mpi_.send(to.data(), static_cast<int>(to.size()), peer, k_tag, &comm_, &x.sends[at]);
      if (rc != 0) {
        (void)owned.release();  // what was started is MPI's for good
        break_down(XIO_ERR_PEER,
                   fmt::format("sending to rank {} failed on rank {}: {}", peer, rank_, mpi_text(mpi_, rc)));
      }
    }
  }

  // True when the request is complete; a null one is.
  bool advance(xio_mpi_handle_t& request, int& rc, int* bytes = nullptr) const {
    if (mpi_.is_complete(&request) != 0) return true;
    int done = 0;
    rc = mpi_.test(&request, &done, bytes);
    return rc != 0 || done != 0;
  }

  bool advance(round& x, int peer, std::optional<error>& failure) {
    const auto at = static_cast<std::size_t>(peer);
    const int wanted = static_cast<int>(x.in[at].size());
    int rc = 0, bytes = wanted;
    const bool received = advance(x.receives[at], rc, &bytes);
    const bool sent = rc == 0 && advance(x.sends[at], rc);
    if (mpi_.is_truncation(rc) != 0 || (rc == 0 && bytes != wanted))
      failure.emplace(XIO_ERR_ARG, text_of_other_size(at, x.in[at].size()));
    else if (rc != 0)
      failure.emplace(XIO_ERR_PEER,
                      fmt::format("exchange {} with rank {} failed on rank {}: {}; see its output for the "
                                  "cause",
                                  number(), peer, rank_, mpi_text(mpi_, rc)));
    return received && sent;
  }

  // Ranks that share cores must not be kept from theirs, so every round without success sleeps a little longer.
  template <class Round>
  bool wait(Round&& round) const {
    const auto until = end_of_round();
    for (auto pause = std::chrono::microseconds(1);; pause = std::min(2 * pause, k_pause_most)) {
      if (round()) return true;
      if (until.passed()) return false;
      std::this_thread::sleep_for(pause);
    }
  }

  [[noreturn]] void break_down(xio_status_t status, std::string sentence) {
    const error e(status, std::move(sentence));
    set_broken(e);
    std::lock_guard hold(state().lock);
    state().broken = true;
    throw e;
  }

  const xio_mpi_calls_t& mpi_;
  const int rank_, size_;
  xio_mpi_handle_t comm_{};
};

}  // namespace

namespace {

std::unique_ptr<channel> connect_over(const xio_mpi_calls_t& mpi, const xio_mpi_handle_t& comm,
                                      const bootstrap_options& o) {
  auto c = std::make_unique<mpi_channel>(mpi, comm, o);
  c->hold(configured_key::from(o));
  return c;
}

mpi_abi abi_of(const place_by_comm& mine) {
  switch (mine.kind) {
    case XIO_MPI_OPEN_MPI: return mpi_abi::open_mpi;
    case XIO_MPI_MPICH: return mpi_abi::mpich;
    default: break;
  }
  fail(XIO_ERR_UNSUPPORTED,
       "xio_init_attr_t.mpi_kind is {}, and libxio knows XIO_MPI_OPEN_MPI and XIO_MPI_MPICH; include xio/mpi.h, which "
       "sets it, with the mpi.h of Open MPI or of MPICH and those that share its binary interface",
       mine.kind);
}

// A handle of one MPI means nothing to another, which would follow it as a pointer.
void refuse_another_mpi(const place_by_comm& mine, const bootstrap_options& o) {
  const mpi_abi wanted = abi_of(mine);
  if (!is_mpi_started())
    fail(
        XIO_ERR_STATE,
        "xio_init_attr_t.mpi_comm is a communicator of {}, and no MPI of this process is started; call MPI_Init before "
        "xio_init, and xio_finalize before MPI_Finalize",
        mpi_name(wanted));
  if (const mpi_abi loaded = expected_mpi(o); loaded != wanted)
    fail(XIO_ERR_CONFIG,
         "xio_init_attr_t.mpi_comm is a communicator of {}, and the MPI that this process has started is {}; compile "
         "the part of the program that calls xio_init with the mpi.h of the MPI that the process uses",
         mpi_name(wanted), mpi_name(loaded));
}

xio_mpi_handle_t comm_of(const xio_mpi_calls_t& mpi, const place_by_comm& mine) {
  const std::size_t wanted = abi_of(mine) == mpi_abi::open_mpi ? sizeof(void*) : sizeof(int);
  if (mine.bytes != wanted)
    fail(XIO_ERR_CONFIG,
         "xio_init_attr_t.mpi_comm_bytes is {}, and an MPI_Comm of {} has {}; set it to sizeof(MPI_Comm)", mine.bytes,
         mpi_name(abi_of(mine)), wanted);
  xio_mpi_handle_t comm{};
  std::memcpy(&comm, mine.comm, mine.bytes);
  if (mpi.is_null(&comm) != 0)
    fail(XIO_ERR_ARG,
         "xio_init_attr_t.mpi_comm is MPI_COMM_NULL; only members of a communicator call xio_init with it");
  if (mpi.joins_groups(&comm) != 0)
    fail(XIO_ERR_ARG, "xio_init_attr_t.mpi_comm joins two groups; merge them by MPI_Intercomm_merge first");
  return comm;
}

}  // namespace

bool mpi_is_running() { return is_mpi_started(); }

std::unique_ptr<channel> connect_mpi(const bootstrap_options& o) {
  if (!has_mpi() && !started_by_mpirun()) refuse_without_launcher();
  const xio_mpi_calls_t& mpi = load_mpi(o);
  {
    std::lock_guard hold(state().lock);
    start_mpi(mpi);
  }
  xio_mpi_handle_t world{};
  mpi.world(&world);
  return connect_over(mpi, world, o);
}

std::unique_ptr<channel> connect_mpi_comm(const bootstrap_options& o, const place_by_comm& mine) {
  refuse_another_mpi(mine, o);
  const xio_mpi_calls_t& mpi = load_mpi(o);
  {
    std::lock_guard hold(state().lock);
    start_mpi(mpi);
  }
  return connect_over(mpi, comm_of(mpi, mine), o);
}

}  // namespace xio::bootstrap

#else  // HAVE_MPI

namespace xio::bootstrap {
namespace {
[[noreturn]] void refuse_without_mpi() {
  fail(XIO_ERR_UNSUPPORTED,
       "this libxio has no MPI bootstrap because it was built without MPI; install libopenmpi-dev and configure again, "
       "or start with xiorun");
}
}  // namespace

bool mpi_is_running() { return false; }

std::unique_ptr<channel> connect_mpi(const bootstrap_options&) { refuse_without_mpi(); }
std::unique_ptr<channel> connect_mpi_comm(const bootstrap_options&, const place_by_comm&) { refuse_without_mpi(); }
}  // namespace xio::bootstrap

#endif
