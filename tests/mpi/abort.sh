#!/bin/bash
# SPDX-License-Identifier: MIT
# xio_abort ends every PE, with its status and one sentence, below each launcher that this build has.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}"
export XIO_TIMEOUT_MS=100000
program=$builddir/tests/mpi/abort

# ends STATUS N COMMAND...: the command ends so within 20 s, and says so once, of the last of N PEs.
ends() {
  local wanted=$1 n=$2 out status line
  shift 2
  SECONDS=0
  out=$(timeout -k 5 60 "$@" 2>&1)
  status=$?
  line="xio_abort: PE $((n - 1)) of $n ends all with status $wanted: the input has no end"
  if [ $status != "$wanted" ] || [ $SECONDS -gt 20 ] || [ "$(grep -c "$line\$" <<<"$out")" != 1 ] ||
    ! grep -q "PE $((n - 1)) buffers this line" <<<"$out"; then
    fail "$*: status $status after $SECONDS s" <(tail -n 20 <<<"$out")
  fi
}

ends 7 1 env XIO_BOOTSTRAP=local "$program" 7
ends 42 3 "$builddir/xiorun" -n 3 "$program" 42
ends 1 2 "$builddir/xiorun" -n 2 "$program" 0
ends 1 2 "$builddir/xiorun" -n 2 "$program" 256
if has HAVE_UCX; then ends 9 2 env XIO_BOOTSTRAP=ucx "$builddir/xiorun" -n 2 "$program" 9; fi
if can_mpirun; then
  export -f mpirun_np
  export MPIRUN
  ends 42 3 bash -c 'mpirun_np 3 "$@"' - "$program" 42
  ends 1 2 bash -c 'mpirun_np 2 "$@"' - "$program" 0
fi
if pgrep -f "^$program" >/dev/null; then
  fail 'a PE still runs'
fi
finish abort
