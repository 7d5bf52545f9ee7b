#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs of rocSHMEM over XIO, with 2, 3 and 4 PEs, by every route.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${start:?}"
routes=direct
if has XIO_ENABLE_MODEL; then routes='direct rdma sdma'; fi
sizes='2 3 4'
if crowded 3; then sizes=2; fi
for route in $routes; do
  for n in $sizes; do
    for program in $("$srcdir/tests/leave_out" "rocshmem:$route:$n" types amo waits teams collectives varied mistakes); do
      out=$(XIO_ROUTE=$route timeout -k 5 120 "$start" -n "$n" "$builddir/tests/compat/$program" 2>&1)
      status=$?
      # The sentence of the first failure comes once from each PE.
      if [ $status = 0 ] && [ "$program" = mistakes ]; then
        [ "$(grep -c 'failed first with XIO_ERR_PE; the last that failed: xio_' <<<"$out")" = "$n" ] || status=sentence
      fi
      if [ $status != 0 ]; then
        fail "$program -n $n by $route: $status" <(tail -n 20 <<<"$out")
      fi
    done
  done
done
out=$(XIO_TIMEOUT_MS=50000 timeout 30 "$start" -n 3 "$builddir/tests/compat/mistakes" exit 2>&1)
status=$?
if [ $status != 6 ] || ! grep -q 'xio_abort: PE 2 of 3 ends all with status 6: rocshmem_global_exit$' <<<"$out"; then
  fail "rocshmem_global_exit: $status: $out"
fi
# rocSHMEM's variables, and XIO's before them.
out=$(ROCSHMEM_HEAP_SIZE=8M timeout 60 "$start" -n 2 "$builddir/tests/compat/amo" 2>&1)
grep -q 'taken from ROCSHMEM_\* variables: XIO_HEAP_SIZE=8M$' <<<"$out" || fail "ROCSHMEM_HEAP_SIZE: $out"
out=$(ROCSHMEM_HEAP_SIZE=8M XIO_HEAP_SIZE=16M timeout 60 "$start" -n 2 "$builddir/tests/compat/amo" 2>&1)
if grep -q 'taken from' <<<"$out"; then fail "XIO_HEAP_SIZE goes before: $out"; fi
finish rocshmem
