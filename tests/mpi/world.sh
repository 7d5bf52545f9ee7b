#!/bin/bash
# SPDX-License-Identifier: MIT
# Worlds among real processes, by xiorun and by mpirun.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${MPIRUN=}" "${gpu:?}" "${sanitizer:?}"
world=$builddir/tests/mpi/world
xiorun=$builddir/xiorun
unset XIO_BOOTSTRAP XIO_HEAP_SIZE XIO_ROUTE
ran=0

# expect STATUS COMMAND...
expect() {
  local status=$1 got
  shift
  ran=$((ran + 1))
  timeout -k 5 90 "$@" </dev/null
  got=$?
  if [ $got != "$status" ]; then
    fail "$*: status $got, expected $status"
  fi
}

modes='life heap mismatch fork at_exit'
if has XIO_ENABLE_MODEL; then modes="$modes contexts"; fi
XIO_BOOTSTRAP=local expect 0 "$world" at_exit
for mode in $modes; do
  for n in 2 4; do expect 0 "$xiorun" -n $n "$world" "$mode"; done
done
export XIO_TIMEOUT_MS=3000
expect 0 "$xiorun" --grace 20 -n 3 "$world" death_in_init
expect 137 "$xiorun" --grace 20 -n 3 "$world" death
unset XIO_TIMEOUT_MS
# What PE 0, through which a TCP world's exchanges go, moves for a ctx by RDMA with a pool of one: for each other PE three
# votes of 16 bytes and a word, alike on all PEs and so sent back once, and of each of the n PEs a cell with two queue
# pairs; where these are made when they are needed, a length and a message without queue pairs, alike on all PEs. 21
# bytes of each frame and 16 of each message are around it.
ctx_bytes() {
  local n=$1 how=$2
  local wanted=$(((n - 1) * (3 * 2 * (37 + 16) + 2 * (37 + 4) + $3))) got
  ran=$((ran + 1))
  got=$(XIO_CONNECT=$how XIO_LOG_LEVEL=debug XIO_NIC_EXECUTOR=shm timeout -k 5 120 "$xiorun" -n "$n" "$world" contexts 2>&1 </dev/null |
    sed -n 's/^xio 0 .*xio_ctx_create has moved \([0-9]*\) bytes.*/\1/p' | sed -n 7p)
  [ "$got" = "$wanted" ] && return
  fail "PE 0 of $n moved ${got:-no} bytes for a ctx made $how, expected $wanted"
}
if has XIO_ENABLE_MODEL && [ "$gpu" = host ] && [ "$sanitizer" = no ]; then
  for n in 8 32; do
    ctx_bytes $n eager "2 * (37 + n * (4 + 16 + 2 * (4 + 12)))"
    ctx_bytes $n lazy '2 * (37 + 4) + 2 * (37 + 16)'
  done
fi

# Without a thread, and with a program that may be run and not read.
alien=()
if [ "$(id -u)" = 0 ]; then alien=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
if has XIO_ENABLE_MODEL && [ "$gpu" = host ] && [ "$sanitizer" = no ]; then
  expect 0 "$xiorun" -n 2 "$world" no_thread
  closed=$(mktemp -d)
  cp "$world" "$closed/world"
  chmod 755 "$closed"
  chmod 111 "$closed/world"
  if "${alien[@]}" test -x "$xiorun" -a -r "$builddir/.libs/libxio.so"; then
    expect 0 "${alien[@]}" "$xiorun" -n 2 "$closed/world" not_readable
  fi
  rm -rf "$closed"
fi
if has HAVE_MPI && [ -n "$MPIRUN" ]; then
  export -f mpirun_np
  export MPIRUN
  for mode in $modes; do
    # shellcheck disable=SC2016
    for n in 2 4; do expect 0 bash -c 'mpirun_np "$@"' mpirun_np $n "$world" "$mode"; done
  done
fi

[ $ran = 0 ] && skip 'no launcher in this build'
finish world
