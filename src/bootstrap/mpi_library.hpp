// SPDX-License-Identifier: MIT
// The MPI of this process, and libxio's module for it. libxio is linked with no MPI: a program that uses one has it
// loaded, and in another program nothing of MPI is loaded until its bootstrap is asked for.
#pragma once
#include "base/options.hpp"
#include "bootstrap/mpi_module.h"

namespace xio::bootstrap {

// Binary interfaces. MPICH's is that of Intel MPI, MVAPICH and others as well.
enum class mpi_abi { open_mpi, mpich };
const char* mpi_name(mpi_abi abi);  // "Open MPI"

// The MPI that load_mpi would take: the one that is loaded, else the one that the launcher's variables name, if there
// is a module for it.
mpi_abi expected_mpi(const bootstrap_options& o);

bool has_mpi();  // loaded
// Loaded, started and not ended.
bool is_mpi_started();

// The calls of the process's MPI. Loads the module, and where the process has no MPI yet the library; later calls give
// the same. Throws XIO_ERR_UNSUPPORTED where one of them is missing or does not fit.
const xio_mpi_calls_t& load_mpi(const bootstrap_options& o);

}  // namespace xio::bootstrap
