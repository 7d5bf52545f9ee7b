// SPDX-License-Identifier: MIT
// How PEs find each other and exchange small messages while a world is set up and torn down.
// Nothing here is on a data path. Calls are collective over the world and made by one thread at a time.
#pragma once
#include <memory>
#include <type_traits>

#include "base/error.hpp"
#include "base/options.hpp"
#include "bootstrap/cells.hpp"
#include "bootstrap/deadline.hpp"

namespace xio::bootstrap {

class world_keys;       // world_keys.hpp
struct configured_key;  // the same

// Of all ranks in an allgather; of the cells from one rank, and for one, in an all-to-all.
inline constexpr std::size_t k_data_max = std::size_t{256} << 20;

class channel {
 public:
  virtual ~channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;  // "mpi", "tcp", "ucx", "local"

  // Every rank gives `mine` (the same number of bytes on every rank) and gets size()*mine.size() bytes,
  // by rank. Throws XIO_ERR_TIMEOUT or XIO_ERR_PEER naming the rank that is silent or gone.
  virtual std::vector<std::byte> allgather(std::span<const std::byte> mine) = 0;

  // Every rank gives a cell for each rank, and gets those that the ranks have for it. Cells may differ in size, and be
  // empty. Throws as allgather does.
  virtual cells all_to_all(const cells& mine) = 0;

  // Returns when every rank has called it. Default: an allgather of one byte.
  virtual void barrier();

  // Ends the other ranks, if the bootstrap has a way, and perhaps this process as well. Any thread.
  virtual void abort(int) noexcept {}

  // Ranks have died: what this channel would wait for when it ends does not come.
  virtual void forsake() noexcept {}

  // "rank 2 was killed by signal 9" where the launcher has said so, else "": proof that its process is gone.
  virtual std::string end_of(int) const { return ""; }

  // That this rank has sent and received in exchanges, where the channel counts them (tcp), else 0.
  virtual std::uint64_t bytes_moved() const { return 0; }

  // False: it has died or was left out, and the others go on without it (members.hpp). Exchanges then give what this
  // rank gave in its place.
  virtual bool takes_part(int) const { return true; }

  // Whether nobody but the ranks can read or forge what is exchanged.
  virtual bool sealed() const { return false; }
  // Keys that any two ranks share; the first call is collective.
  virtual std::shared_ptr<const world_keys> keys();
  // XIO_TCP_KEY, with which the ranks of a channel that is not sealed prove their keys to each other.
  void hold(std::shared_ptr<const configured_key> key) { key_ = std::move(key); }

  // All exchanges have this one deadline from here on; none: each has its own. See one_call.
  void limit(std::optional<deadline> call) { call_ = call; }
  const std::optional<deadline>& limit() const { return call_; }

 protected:
  // When an exchange that begins at this moment has to be over.
  deadline end_of_exchange(std::uint64_t timeout_ms) const { return call_ ? *call_ : deadline::in(timeout_ms); }
  // Throw for what no exchange takes, before anything is sent: the channel stays usable.
  void check_allgather_size(std::size_t bytes) const;
  void check_cells(const cells& mine) const;

 private:
  std::optional<deadline> call_;
  std::shared_ptr<const configured_key> key_;
  std::shared_ptr<const world_keys> keys_;
};

// While it lives, all exchanges of a channel have one deadline together: a call that is made of several does not wait
// anew for each. Within another one it changes nothing.
class one_call {
 public:
  one_call(channel& c, std::uint64_t timeout_ms) : channel_(c), outer_(c.limit()) {
    if (!outer_) c.limit(deadline::in(timeout_ms));
  }
  one_call(const one_call&) = delete;
  one_call& operator=(const one_call&) = delete;
  ~one_call() { channel_.limit(outer_); }

 private:
  channel& channel_;
  std::optional<deadline> outer_;
};

// Chooses by options.bootstrap; auto: tcp if xiorun started us, mpi if Open MPI's mpirun did (or MPI is already
// initialised), tcp if XIO_TCP_ROOT is set, mpi if another launcher speaks PMI or PMIx, else local (one PE), which is
// refused when a rank or size of tcp is set. A choice that cannot work is an error, never another choice.
//
// A world of one PE is refused where the launcher started several tasks, unless local or XIO_TCP_SIZE=1 asks for it.
// With XIO_TCP_ROOT, a rank or size that is not set is the launcher's.
//
// Every connect is collective and returns when the world is complete, or throws within options.timeout_ms (0: waits for
// ever). A channel that has thrown is broken: later calls throw at once.
std::unique_ptr<channel> connect(const bootstrap_options& o);

// A world of one PE; the launcher's variables are ignored.
std::unique_ptr<channel> connect_local(const bootstrap_options& o);

// Rank 0 listens at XIO_TCP_ROOT; every rank proves the shared key. Throws XIO_ERR_AUTH for a wrong key, XIO_ERR_CONFIG
// for a wrong or double rank, a wrong size or a missing variable, XIO_ERR_TIMEOUT for ranks that do not come.
std::unique_ptr<channel> connect_tcp(const bootstrap_options& o);

// MPI_COMM_WORLD, through a communicator of its own. Starts MPI if the program has not, and then ends it at exit. When
// a PE dies, mpirun ends the others.
std::unique_ptr<channel> connect_mpi(const bootstrap_options& o);

// The communicator that a program gives instead of a launcher.
struct place_by_comm {
  const void* comm = nullptr;  // where the MPI_Comm is
  std::size_t bytes = 0;       // that it has
  std::uint32_t kind = 0;      // xio_mpi_kind_t
};

// The ranks of that communicator, through a duplicate of it. MPI is started. Throws XIO_ERR_CONFIG for one of another
// MPI than the process's, XIO_ERR_STATE where MPI is not started, XIO_ERR_ARG for one that names no group of its own.
std::unique_ptr<channel> connect_mpi_comm(const bootstrap_options& o, const place_by_comm& mine);

// UCX tags. The workers' addresses have to travel once by another way first: the channel that auto would choose (tcp
// under xiorun or with XIO_TCP_ROOT, or mpi), which stays open as long as this one.
std::unique_ptr<channel> connect_ucx(const bootstrap_options& o);

// Typed allgather of a trivially copyable value.
template <class T>
std::vector<T> allgather_value(channel& c, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto all = c.allgather(std::as_bytes(std::span<const T, 1>(&mine, 1)));
  std::vector<T> out(static_cast<std::size_t>(c.size()));
  std::memcpy(out.data(), all.data(), all.size());
  return out;
}

// An allgather of up to `most` bytes from each rank, of which each may give another number. Throws as allgather does.
cells allgather_unequal(channel& c, std::span<const std::byte> mine, std::size_t most);

}  // namespace xio::bootstrap
