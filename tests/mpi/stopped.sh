#!/bin/bash
# SPDX-License-Identifier: MIT
# Processes that are stopped for longer than XIO_TIMEOUT_MS: all of them, which must not matter when they are continued,
# and one alone, which its peers must not wait for.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${gpu:?}" "${work=}"
[ "$gpu" = host ] || skip 'kernels of a GPU go on while their process is stopped'
unset XIO_BOOTSTRAP
export XIO_TIMEOUT_MS=2000
make_work

# play all|one ROUTE N: stops them in mid-run for 4 s.
play() {
  local what=$1 route=$2 n=$3 job pe pids=() status
  rm -f "$work"/*
  XIO_ROUTE=$route timeout -k 5 120 "$builddir/xiorun" --grace 30 -n "$n" "$builddir/tests/mpi/stopped" "$what" "$work" &
  job=$!
  for ((pe = 0; pe < n; ++pe)); do
    for ((look = 0; look < 600; ++look)); do
      [ -s "$work/pid.$pe" ] && break
      sleep 0.05
    done
    pids+=("$(cat "$work/pid.$pe")")
  done
  if [ "$what" = one ]; then pids=("${pids[1]}"); fi
  sleep 0.5
  kill -STOP "${pids[@]}"
  sleep 4
  kill -CONT "${pids[@]}"
  sleep 0.5
  touch "$work/continued"
  wait "$job"
  status=$?
  if [ $status != 0 ]; then
    fail "$what $route -n $n: status $status"
  fi
}

routes=direct
if has XIO_ENABLE_MODEL; then routes='direct rdma'; fi
for route in $routes; do play all "$route" 3; done
if has XIO_ENABLE_MODEL; then XIO_PEER_ACCESS=off play all auto 2; fi
play one direct 3
finish stopped
