#!/bin/bash
# SPDX-License-Identifier: MIT
# The symmetric heap of every kind (XIO_HEAP_KIND): one PE and several, every route, the host touching it where it may;
# and PEs that do not map each other's heaps.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${builddir:?}" "${gpu:?}" "${start:?}" "${runs:?}" "${failures:?}"

# refused SENTENCE PROGRAM...: two PEs end with a failure and say so.
refused() {
  local sentence=$1 out
  shift
  runs=$((runs + 1))
  if out=$(timeout -k 5 100 "$start" -n 2 "$@" 2>&1); then
    fail "not refused: $*"
  elif ! grep -qE -- "$sentence" <<<"$out"; then
    fail "not said by $*: $sentence" <(tail -n 20 <<<"$out")
  else
    echo "ok   refused: $sentence"
  fi
}
# says SENTENCE PROGRAM...: two PEs end well and say so.
says() {
  local sentence=$1 out
  shift
  runs=$((runs + 1))
  if out=$(timeout -k 5 100 "$start" -n 2 "$@" 2>&1) && grep -qE -- "$sentence" <<<"$out"; then
    echo "ok   $sentence"
  else
    fail "by $*: $sentence" <(tail -n 20 <<<"$out")
  fi
}

export XIO_HEAP_KIND
XIO_HEAP_KIND=device
suite any 2 direct heap
if [ "$gpu" = host ]; then suite any 2 direct 'heap touched'; fi

# The kinds of GPU memory: uncached is an error where there is none.
for XIO_HEAP_KIND in fine uncached; do
  if [ "$gpu" = host ] || [ $XIO_HEAP_KIND = fine ]; then suite any 2 direct heap; fi
done
if [ "$gpu" = cuda ]; then refused 'XIO_HEAP_KIND=uncached: .*set XIO_HEAP_KIND=device' "$builddir/tests/mpi/heap"; fi

XIO_HEAP_KIND=host
suite any 1 direct 'heap touched'
# auto: between GPUs whose atomics do not reach host memory it is RDMA.
suite any 2 auto 'heap touched' rma atomics
suite any 2 rdma 'heap touched'
if [ "$gpu" = host ]; then suite any 4 sdma 'heap touched'; fi

XIO_HEAP_KIND=managed
suite any 1 direct 'heap touched'
if [ "$gpu" = host ]; then
  suite any 2 direct 'heap touched' rma
elif has XIO_ENABLE_MODEL; then
  suite any 2 auto 'heap touched' rma
  says 'managed memory cannot be mapped by another process.*go by RDMA' "$builddir/xio-info" --world
  XIO_ROUTE=direct refused 'route direct wants heaps .*managed memory cannot be mapped' "$builddir/xio-info" --world
else
  XIO_ROUTE=direct refused 'managed memory cannot be mapped by another process' "$builddir/tests/mpi/heap" touched
fi

# One PE's kind is not another's.
# shellcheck disable=SC2016  # for the PEs' shell
refused "XIO_HEAP_KIND is '(host|device)' on PE 0 but '(host|device)' on PE 1" \
  bash -c 'if [ "${XIO_RUN_PE-${OMPI_COMM_WORLD_RANK-0}}" = 0 ]; then export XIO_HEAP_KIND=host; else export XIO_HEAP_KIND=device; fi
    exec "$0"' "$builddir/tests/mpi/heap"
XIO_HEAP_KIND=pinned refused "XIO_HEAP_KIND='pinned' is not known; use one of device\|uncached\|fine\|host\|managed" "$builddir/tests/mpi/heap"
unset XIO_HEAP_KIND

# Heaps that nobody maps: what a machine without peer access does.
export XIO_PEER_ACCESS=off
XIO_ROUTE=direct refused 'route direct wants heaps .*XIO_PEER_ACCESS=off' "$builddir/xio-info" --world
if has XIO_ENABLE_MODEL; then
  suite any 2 auto heap sync
  suite any 4 auto heap
  says 'pe1_8 +rdma' "$builddir/xio-info" --world
fi
unset XIO_PEER_ACCESS
end
