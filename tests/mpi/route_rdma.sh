#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, every op by route rdma.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}" "${few:?}" "${builddir:?}"
# shellcheck disable=SC2086  # a list
suite mpirun 2 rdma $all
if crowded 4; then all=$few; fi
# shellcheck disable=SC2086
suite mpirun 4 rdma $all
# What collectives send, and wrong and missing members of a tree.
for n in 3 5 9 32; do
  if ! crowded $n; then suite xiorun $n rdma 'teams messages'; fi
done
# Queue pairs that are made when the first op goes there, and a peer that is killed before that.
lazy='first_use rma signals atomics immediate teams'
if crowded 3; then lazy=signals; fi
# shellcheck disable=SC2086
XIO_CONNECT=lazy suite any 3 rdma $lazy
if ! crowded 5; then
  XIO_CONNECT=lazy suite xiorun 5 rdma first_use
  XIO_CONNECT=lazy XIO_NIC_EXECUTOR=tcp suite xiorun 9 rdma first_use
  XIO_CONNECT=lazy XIO_TIMEOUT_MS=4000 suite xiorun 3 rdma 'first_use files'
  XIO_CONNECT=lazy XIO_MODEL_FAULTS=fatal@5/pe0 suite xiorun 2 rdma 'first_use lost'
  # row QUEUE-PAIRS PE...: that PE 0 makes, behind three in a row also the next two, then the next four.
  row() {
    local wanted=$1 got
    shift
    got=$(XIO_LOG_LEVEL=debug XIO_ROUTE=rdma XIO_CONNECT=lazy timeout 60 "$builddir/xiorun" -n 9 "$builddir/tests/mpi/first_use" row "$@" 2>&1 |
      grep -c '^xio 0 .*queue pairs of set 4294967296 to PE .* are connected')
    if [ "$got" = "$wanted" ]; then echo "ok   row $*"; else fail "row $*: $got queue pairs, expected $wanted"; fi
  }
  row 4 1 2 4 8
  row 4 3 2 1 5
  row 5 1 2 3
  row 8 1 2 3 6
  XIO_ROUTE=rdma XIO_CONNECT=lazy XIO_TIMEOUT_MS=4000 start_by_tcp 3 timeout -k 5 60 "$builddir/tests/mpi/first_use" dead >/dev/null 2>&1
  if deaths_are_right 2; then echo 'ok   first_use dead'; else fail 'first_use dead'; fi
fi
# Rings, completions and data in what the platform calls GPU memory; on the host platform doorbells, too.
some='rma signals'
if crowded 2; then some=signals; fi
if on_host_platform; then export XIO_MEMORY_MODE=15; else export XIO_MEMORY_MODE=11; fi
# shellcheck disable=SC2086
suite any 2 rdma $some
end
