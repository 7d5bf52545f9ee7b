#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, every op by route rdma.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}" "${few:?}"
# shellcheck disable=SC2086  # a list
suite mpirun 2 rdma $all
if crowded 4; then all=$few; fi
# shellcheck disable=SC2086
suite mpirun 4 rdma $all
# Rings, completions, doorbells and data in what the platform calls GPU memory.
if on_host_platform; then
  export XIO_MEMORY_MODE=15
  suite any 2 rdma rma signals
fi
end
