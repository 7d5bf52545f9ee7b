#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, every op by route sdma.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}" "${few:?}"
# shellcheck disable=SC2086  # a list
suite mpirun 2 sdma $all
if crowded 4; then all=$few; fi
# shellcheck disable=SC2086
suite mpirun 4 sdma $all
# Engines, queues, formats and places of other kinds. Nothing but the copies themselves may differ.
some='rma shapes signals storm'
if crowded 2; then some='rma signals'; fi
with() {
  echo "== $*"
  # Each setting for this suite only.
  local setting
  for setting in "$@"; do export "${setting?}"; done
  # shellcheck disable=SC2086  # a list
  suite any 2 sdma $some
  for setting in "$@"; do unset "${setting%%=*}"; done
}
with XIO_SDMA_QUEUES=4 XIO_MODEL_ENGINES=2 XIO_MODEL_THREADS=2
with XIO_SDMA_GRANULE=4
# Queues in what the platform calls GPU memory, which software engines reach on the host platform only.
if on_host_platform; then with XIO_MEMORY_MODE=15; fi
# Rings of this one hold 16 entries at least.
with XIO_MODEL_GPU=gfx900 XIO_RING_DEPTH=16
for name in gfx942 gfx1010 gfx1030 gfx1100 gfx1201; do with "XIO_MODEL_GPU=$name"; done
end
