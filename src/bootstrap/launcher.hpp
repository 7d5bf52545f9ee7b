// SPDX-License-Identifier: MIT
// Who started this process.
#pragma once

namespace xio::bootstrap {

// Open MPI's mpirun, or another launcher that speaks PMIx or PMI.
bool started_by_mpirun();

// xiorun; see src/tools/xiorun.cpp for the variables it sets.
bool started_by_xiorun();

// MPI_Init was called and MPI_Finalize was not; false in a build without MPI.
bool mpi_is_running();

}  // namespace xio::bootstrap
