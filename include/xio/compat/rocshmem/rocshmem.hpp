// SPDX-License-Identifier: MIT
// Programs of rocSHMEM 3 over XIO: its names, types and meanings. A program keeps its #include <rocshmem/rocshmem.hpp>
// and is compiled with -I.../xio/compat (pkg-config xio-rocshmem) and linked with libxio; docs/porting.md.
//
// The process has one world and one default context, as there. Calls there return nothing where XIO returns a status:
// the first status that is not XIO_OK is kept, the host prints it once, by the next rocshmem_barrier_all or
// rocshmem_finalize, and rocshmem_status() returns it.
//
// Not in this version, and refused by the compiler with a sentence: calls on streams, and copies, atomics and
// collectives of the host (copies and atomics by hipcc alone).
#pragma once
#include "xio/compat/rocshmem/impl/collectives.hpp"
#include "xio/compat/rocshmem/impl/device.hpp"
#include "xio/compat/rocshmem/impl/host.hpp"
#include "xio/compat/rocshmem/impl/later.hpp"
#include "xio/compat/rocshmem/impl/types.hpp"
