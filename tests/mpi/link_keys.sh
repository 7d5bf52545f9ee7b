#!/bin/bash
# SPDX-License-Identifier: MIT
# Checks which end proves that it has the key of the software NICs' links over TCP, and the messages where neither does.
# shellcheck disable=SC2016  # what PEs expand
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${work=}"
if ! has XIO_ENABLE_MODEL; then skip 'links over TCP want the software NIC'; fi
program=$builddir/tests/mpi/signals
make_work
unset XIO_TCP_KEY XIO_TCP_KEY_FILE
export XIO_ROUTE=rdma XIO_NIC_EXECUTOR=tcp UCX_TLS=${UCX_TLS-tcp,self}
trusted='Trust this network, or give every PE the same XIO_TCP_KEY'
runs=0

# expect NAME STATUS LINES 'TEXT' COMMAND...: it ends well (0) or not (1), and so many lines have the text.
expect() {
  local name=$1 status=$2 lines=$3 text=$4 got=0 found
  shift 4
  "$@" >"$work/log" 2>&1 </dev/null || got=1
  found=$(grep -cF -- "$text" "$work/log")
  runs=$((runs + 1))
  if [ $got = "$status" ] && [ "$found" = "$lines" ]; then return; fi
  fail "$name: ended $got, expected $status; $found lines say '$text', expected $lines:" <(tail -n 30 "$work/log")
}
# Two PEs, each with what $5 makes of the environment.
by_mpi() { expect "$1" "$2" "$3" "$4" mpirun_np 2 timeout -k 5 120 sh -c "$5"' exec "$0"' "$program"; }

if can_mpirun; then
  export XIO_BOOTSTRAP=mpi
  by_mpi 'mpi without a key' 0 1 "$trusted" ''
  by_mpi 'mpi with a key' 0 0 "$trusted" 'export XIO_TCP_KEY=one-key-for-all-of-us;'
  by_mpi 'mpi with two keys' 1 2 'holds another key than rank' 'export XIO_TCP_KEY=a-key-of-$OMPI_COMM_WORLD_RANK$PMI_RANK-alone;'
  by_mpi 'mpi with one key' 1 2 'rank 0 has XIO_TCP_KEY or XIO_TCP_KEY_FILE and rank 1 has not' \
    '[ $OMPI_COMM_WORLD_RANK$PMI_RANK = 1 ] || export XIO_TCP_KEY=a-key-of-rank-0-alone;'
fi
for bootstrap in tcp $(if has HAVE_UCX; then echo ucx; fi); do
  export XIO_BOOTSTRAP=$bootstrap
  expect "$bootstrap under xiorun" 0 0 "$trusted" timeout -k 5 120 "$builddir/xiorun" -n 2 "$program"
done
finish "link_keys, $runs runs"
