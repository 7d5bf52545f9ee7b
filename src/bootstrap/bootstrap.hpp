// SPDX-License-Identifier: MIT
// How PEs find each other and exchange small messages while a world is set up and torn down.
// Nothing here is on a data path. Calls are collective over the world and made by one thread at a time.
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/options.hpp"

namespace xio::bootstrap {

class channel {
 public:
  virtual ~channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;  // "mpi", "tcp", "ucx", "local"

  // Every rank gives `mine` (the same number of bytes on every rank) and gets size()*mine.size() bytes,
  // by rank. Throws XIO_ERR_TIMEOUT or XIO_ERR_PEER naming the rank that is silent or gone.
  virtual std::vector<std::byte> allgather(std::span<const std::byte> mine) = 0;

  // Returns when every rank has called it. Default: an allgather of one byte.
  virtual void barrier();
};

// Chooses by options.bootstrap; auto: mpi if started by mpirun (or MPI is already initialised), tcp if
// XIO_TCP_ROOT is set or xiorun started us, else local (one PE).
std::unique_ptr<channel> connect(const options& o);

std::unique_ptr<channel> connect_local(const options& o);
std::unique_ptr<channel> connect_tcp(const options& o);
std::unique_ptr<channel> connect_mpi(const options& o);
std::unique_ptr<channel> connect_ucx(const options& o);

// Typed allgather of a trivially copyable value.
template <class T>
std::vector<T> allgather_value(channel& c, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto all = c.allgather(std::as_bytes(std::span<const T, 1>(&mine, 1)));
  std::vector<T> out(static_cast<std::size_t>(c.size()));
  std::memcpy(out.data(), all.data(), all.size());
  return out;
}

}  // namespace xio::bootstrap
