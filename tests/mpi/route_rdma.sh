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
# What collectives send, and wrong and missing members of a tree.
for n in 3 5 9 32; do
  if ! crowded $n; then suite xiorun $n rdma 'teams messages'; fi
done
# Rings, completions and data in what the platform calls GPU memory; on the host platform doorbells, too.
some='rma signals'
if crowded 2; then some=signals; fi
if on_host_platform; then export XIO_MEMORY_MODE=15; else export XIO_MEMORY_MODE=11; fi
# shellcheck disable=SC2086
suite any 2 rdma $some
end
