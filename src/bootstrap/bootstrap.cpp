// SPDX-License-Identifier: MIT
#include "bootstrap/bootstrap.hpp"

#include "base/log.hpp"
#include "bootstrap/launcher.hpp"
#include "bootstrap/pmi2.hpp"

namespace xio::bootstrap {

namespace {

// Ranks that somebody has numbered are not worlds of one each. A key alone asks for nothing: a shell may have it for
// all its programs.
void refuse_ranks_without_root(const bootstrap_options& o) {
  std::string given;
  if (!o.tcp_rank.empty()) given = "XIO_TCP_RANK='" + o.tcp_rank + "'";
  if (!o.tcp_size.empty()) given += (given.empty() ? "XIO_TCP_SIZE='" : " and XIO_TCP_SIZE='") + o.tcp_size + "'";
  if (given.empty()) return;
  fail(XIO_ERR_CONFIG,
       "{} without XIO_TCP_ROOT: this rank cannot find the others; set XIO_TCP_ROOT to host:port of rank 0, start with "
       "xiorun, or set XIO_BOOTSTRAP=local for a world of one",
       given);
}

std::unique_ptr<channel> connect_auto(const bootstrap_options& o) {
  switch (choose_way(o)) {
    case way::tcp: return connect_tcp(o);
    case way::mpi: return connect_mpi(o);
    case way::pmi2: return connect_pmi2(o);
    case way::none: break;
  }
  refuse_ranks_without_root(o);
  return connect_local(o);
}

std::unique_ptr<channel> connect_by(option::bootstrap way, const bootstrap_options& o) {
  switch (way) {
    case option::bootstrap::local: return connect_local(o);
    case option::bootstrap::tcp: return connect_tcp(o);
    case option::bootstrap::mpi: return connect_mpi(o);
    case option::bootstrap::ucx: return connect_ucx(o);
    case option::bootstrap::pmi2: return connect_pmi2(o);
    case option::bootstrap::automatic: break;
  }
  return connect_auto(o);
}

}  // namespace

void channel::barrier() {
  const std::byte here{1};
  allgather(std::span<const std::byte>(&here, 1));
}

void channel::check_allgather_size(std::size_t bytes) const {
  if (bytes > k_data_max / static_cast<std::size_t>(size()))
    fail(XIO_ERR_ARG, "an exchange of {} bytes from each of {} ranks is more than {} bytes in all", bytes, size(),
         k_data_max);
}

void channel::check_cells(const cells& mine) const {
  if (mine.count() != static_cast<std::size_t>(size()))
    fail(XIO_ERR_ARG, "{} cells were given to an exchange of {} ranks; there must be one for each", mine.count(),
         size());
  if (mine.bytes() > k_data_max)
    fail(XIO_ERR_ARG, "{} bytes for the other ranks were given to an exchange, and {} is the most", mine.bytes(),
         k_data_max);
}

cells allgather_unequal(channel& c, std::span<const std::byte> mine, std::size_t most) {
  const auto sizes = allgather_value(c, static_cast<std::uint32_t>(mine.size()));
  const auto longest = std::max_element(sizes.begin(), sizes.end());
  if (*longest > most)
    fail(XIO_ERR_PEER, "rank {} has {} bytes to tell where {} are the most; run the same XIO on every rank",
         longest - sizes.begin(), *longest, most);
  std::vector<std::byte> padded(mine.begin(), mine.end());
  padded.resize(*longest);
  const auto all = c.allgather(padded);
  cells out;
  for (std::size_t r = 0; r < sizes.size(); ++r) out.add(std::span(all).subspan(r * padded.size(), sizes[r]));
  return out;
}

std::unique_ptr<channel> connect(const bootstrap_options& o) {
  if (o.bootstrap == option::bootstrap::automatic || o.bootstrap == option::bootstrap::ucx)
    refuse_mpi_that_would_abort(o);
  // Open MPI without a server that it can reach changes PMIX_RANK to that of a world of one.
  const auto task = find_task();
  std::unique_ptr<channel> c = connect_by(o.bootstrap, o);
  if (task) refuse_a_world_of_one_of_many(*c, o, *task);
  log::debug("bootstrap {}: rank {} of {}", c->name(), c->rank(), c->size());
  return c;
}

}  // namespace xio::bootstrap
