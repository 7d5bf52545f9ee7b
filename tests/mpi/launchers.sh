#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs that xiorun or nothing but TCP has started; one PE alone; and many.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}"
# shellcheck disable=SC2086  # a list
suite xiorun 2 direct $all
suite xiorun 2 rdma rma signals litmus
suite tcp 2 direct rma signals sync
suite tcp 2 rdma signals litmus
suite tcp 2 sdma rma signals
suite any 1 direct rma signals sync
suite any 1 rdma rma signals sync
XIO_SDMA_THRESHOLD=4k suite any 2 auto rma signals
XIO_RING_DEPTH=4 XIO_TICKET_START=4294967288 suite any 2 rdma rma atomics signals
XIO_RING_DEPTH=4 XIO_TICKET_START=4294967288 suite any 2 sdma rma signals
XIO_HOST_WAVE=32 suite any 2 direct rma signals
suite any 32 direct allpairs
# 4 GiB + 1 twice over, and the machine's own needs.
free_kb=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
if [ "${free_kb:-0}" -ge $((12 << 20)) ] && [ "${sanitizer:-no}" = no ]; then
  limit=250 suite any 1 direct big
  limit=250 suite any 1 sdma big
else
  echo 'not run: big wants 12 GiB of free memory and no sanitizer'
fi
end
