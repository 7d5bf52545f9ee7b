#!/bin/bash
# SPDX-License-Identifier: MIT
# The examples do what their first lines say, and check it themselves.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${start:?}"
if ! grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h"; then skip 'no software devices in this build'; fi
examples=$builddir/examples

try() {
  if out=$("$@" 2>&1); then
    echo "ok   $*"
  else
    fail "$*: status $?" <(tail -n 20 <<<"$out")
  fi
}

for where in same host; do
  for bytes in 1 65536 4194311; do try timeout 100 "$examples/sdma_p2p" "$bytes" "$where"; done
done
# An example that failed does not report success.
if "$examples/sdma_p2p" 100 99 >/dev/null 2>&1; then fail 'a device that is not there'; fi
for n in 1 2 4; do
  for bytes in 1 1000003; do
    try timeout 100 "$start" -n "$n" "$examples/sdma_allgather" "$bytes"
    if can_mpirun; then
      try mpirun_np "$n" timeout 100 "$examples/sdma_allgather" "$bytes"
    fi
  done
done
finish examples
