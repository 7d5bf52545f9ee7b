// SPDX-License-Identifier: MIT
// The launcher that started this process, and the number of processes that it started.
#pragma once
#include "bootstrap/bootstrap.hpp"

namespace xio::bootstrap {

// Open MPI's mpirun, or another launcher that speaks PMIx or PMI.
bool started_by_mpirun();

// xiorun; see src/tools/xiorun.cpp for the variables it sets.
bool started_by_xiorun();

// MPI_Init was called and MPI_Finalize was not; false in a build without MPI.
bool mpi_is_running();

// The facts about this process in the variables of the launcher that started it last.
struct started_task {
  std::string launcher;  // "Slurm"
  std::string evidence;  // "SLURM_STEP_NUM_TASKS=2"
  int rank = -1;         // -1: not said
  int size = 0;          // of the whole step; 0: not said
  int at_least = 0;      // what the variables prove of the size
};
std::optional<started_task> find_task();

// The launcher started more than this process.
bool started_with_others();

// The way that auto takes: xiorun's, torchrun's or mpirun's, else XIO_TCP_ROOT, then PMI or PMIx by MPI, or XIO's own
// PMI-2 where Slurm offers that and MPI does not know it, then torchrun's variables that another program has set; none:
// there is no way.
enum class way { none, tcp, mpi, pmi2 };
way choose_way(const bootstrap_options& o);

// XIO_TCP_RANK and XIO_TCP_SIZE; one that is not set is the launcher's, or empty.
struct tcp_numbers {
  std::string rank, size;
};
tcp_numbers numbers_for_tcp(const bootstrap_options& o);

// XIO_TCP_ROOT; if it is not set the place beside torchrun's own, or empty.
struct tcp_place {
  std::string root;      // host:port
  std::string variable;  // its name in sentences
};
tcp_place place_for_tcp(const bootstrap_options& o);

// Throws XIO_ERR_CONFIG for a world of one PE where the launcher started several: each would be PE 0 of its own. `task`
// was found before the PE was connected.
void refuse_a_world_of_one_of_many(const channel& c, const bootstrap_options& o, const started_task& task);

// The same before MPI is started where Slurm offers only PMI-1 or PMI-2 to Open MPI: without support for them it does
// not return from MPI_Init but ends the process.
void refuse_mpi_that_would_abort(const bootstrap_options& o);

}  // namespace xio::bootstrap
