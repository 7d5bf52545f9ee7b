// SPDX-License-Identifier: MIT
// One PE of the bootstrap tests that need real processes: tests/mpi/bootstrap_*.sh start it by mpirun and xiorun.
//   bootstrap_probe SCENARIO [EXPECTED-NAME]
// Exit status 0: all as it should be; 1: not; 3: an error came, its status and sentence are on standard output.
#include "config.h"
#ifdef HAVE_MPI
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#endif
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/log.hpp"
#include "bootstrap/bootstrap.hpp"

namespace {

using xio::bootstrap::channel;

#define REQUIRE(condition)                                                         \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                               \
    }                                                                              \
  } while (0)

std::byte pattern(int rank, std::size_t i, unsigned salt) {
  return static_cast<std::byte>((static_cast<unsigned>(rank) * 131 + static_cast<unsigned>(i) * 7 + salt) & 0xff);
}

void check_allgather(channel& c, std::size_t bytes, unsigned salt) {
  std::vector<std::byte> mine(bytes);
  for (std::size_t i = 0; i < bytes; ++i) mine[i] = pattern(c.rank(), i, salt);
  const auto all = c.allgather(mine);
  REQUIRE(all.size() == bytes * static_cast<std::size_t>(c.size()));
  for (int r = 0; r < c.size(); ++r)
    for (std::size_t i = 0; i < bytes; ++i)
      REQUIRE(all[static_cast<std::size_t>(r) * bytes + i] == pattern(r, i, salt));
}

// Rank r has for rank q a cell of `bytes` * (r + 2 q) bytes; where that is 0 it is empty.
void check_all_to_all(channel& c, std::size_t bytes) {
  const auto bytes_for = [bytes](int from, int to) { return bytes * static_cast<std::size_t>(from + 2 * to); };
  const auto salt_of = [](int to) { return static_cast<unsigned>(to) + 5; };
  xio::bootstrap::cells mine;
  for (int to = 0; to < c.size(); ++to) {
    std::vector<std::byte> cell(bytes_for(c.rank(), to));
    for (std::size_t i = 0; i < cell.size(); ++i) cell[i] = pattern(c.rank(), i, salt_of(to));
    mine.add(cell);
  }
  const auto got = c.all_to_all(mine);
  REQUIRE(got.count() == static_cast<std::size_t>(c.size()));
  for (int from = 0; from < c.size(); ++from) {
    const auto cell = got[static_cast<std::size_t>(from)];
    REQUIRE(cell.size() == bytes_for(from, c.rank()));
    for (std::size_t i = 0; i < cell.size(); ++i) REQUIRE(cell[i] == pattern(from, i, salt_of(c.rank())));
  }
}

void exercise(channel& c) {
  unsigned salt = 0;
  for (const std::size_t bytes : {0, 1, 8, 300}) check_all_to_all(c, bytes);
  if (c.size() <= 5) check_all_to_all(c, 70'001);
  for (const std::size_t bytes : {0, 1, 8, 4097, 65521}) check_allgather(c, bytes, ++salt);
  if (c.size() <= 8) check_allgather(c, 1'000'003, ++salt);
  for (int i = 0; i < 100; ++i) c.barrier();
}

// Worlds one after another, and two at once.
void worlds(const xio::options& o, const char* name) {
  for (int i = 0; i < 3; ++i) {
    auto c = xio::bootstrap::connect(o);
    REQUIRE(std::strcmp(c->name(), name) == 0);
    if (const char* n = std::getenv("XIO_TEST_SIZE")) REQUIRE(c->size() == std::atoi(n));
    exercise(*c);
  }
  auto a = xio::bootstrap::connect(o), b = xio::bootstrap::connect(o);
  check_allgather(*b, 100, 1);
  check_allgather(*a, 100, 2);
  a.reset();
  check_allgather(*b, 100, 3);
}

using exchange = void (*)(channel&);
void wait_for_all(channel& c) { c.barrier(); }
void give_cells(channel& c) { check_all_to_all(c, 8); }

// The last rank leaves without a word; the others must say who it was.
void death(const xio::options& o, exchange next) {
  auto c = xio::bootstrap::connect(o);
  c->barrier();
  if (c->rank() == c->size() - 1) raise(SIGKILL);
  for (int i = 0; i < 2; ++i) next(*c);
}

// The last rank lives but does not take part.
void silence(const xio::options& o, exchange next) {
  auto c = xio::bootstrap::connect(o);
  c->barrier();
  if (c->rank() == c->size() - 1)
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * o.timeout_ms));
  else
    next(*c);
}

// Prints this PE's rank and its world's size.
void who(const xio::options& o) {
  auto c = xio::bootstrap::connect(o);
  c->barrier();
  std::printf("rank %d of %d by %s\n", c->rank(), c->size(), c->name());
}

// Rank 0 gives cells where the others give as many bytes as the size of one has.
void other_kind(const xio::options& o) {
  auto c = xio::bootstrap::connect(o);
  std::vector<std::byte> mine(16);
  if (c->rank() == 0)
    give_cells(*c);
  else
    c->allgather(mine);
}

// Ranks that give different numbers of bytes.
void mismatch(const xio::options& o) {
  auto c = xio::bootstrap::connect(o);
  std::vector<std::byte> mine(c->rank() == 0 ? 8 : 16);
  c->allgather(mine);
}

#ifdef HAVE_MPI
// A program that has started MPI itself.
void who_with_mpi(const xio::options& o) {
  MPI_Init(nullptr, nullptr);
  who(o);
  MPI_Finalize();
}

// A program that uses MPI itself: its MPI stays its own.
void program_with_mpi(const xio::options& o) {
  MPI_Init(nullptr, nullptr);
  worlds(o, "mpi");
  int rank = 0, size = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  REQUIRE(sum == size * (size - 1) / 2);
  auto open = xio::bootstrap::connect(o);
  MPI_Finalize();
  try {  // too late for it, but no crash
    open->barrier();
    REQUIRE(!"a barrier after MPI_Finalize");
  } catch (const xio::error& e) {
    REQUIRE(e.status() == XIO_ERR_STATE);
  }
  try {
    xio::bootstrap::connect_mpi(o);
    REQUIRE(!"a world after MPI_Finalize");
  } catch (const xio::error& e) {
    REQUIRE(e.status() == XIO_ERR_STATE);
  }
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "worlds";
  const char* name = argc > 2 ? argv[2] : "";
  try {
    const auto o = xio::options::from_environment();
    if (scenario == "worlds") worlds(o, name);
    if (scenario == "who") who(o);
    if (scenario == "death") death(o, wait_for_all);
    if (scenario == "death_in_cells") death(o, give_cells);
    if (scenario == "silence") silence(o, wait_for_all);
    if (scenario == "silence_in_cells") silence(o, give_cells);
    if (scenario == "other_kind") other_kind(o);
    if (scenario == "mismatch") mismatch(o);
#ifdef HAVE_MPI
    if (scenario == "program_with_mpi") program_with_mpi(o);
    if (scenario == "who_with_mpi") who_with_mpi(o);
#endif
    return 0;
  } catch (const xio::error& e) {
    std::printf("%s: %s\n", xio_status_name(e.status()), e.what());
    std::fflush(stdout);
    return 3;
  }
}
