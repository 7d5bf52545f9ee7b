#!/bin/bash
# SPDX-License-Identifier: MIT
# A link that goes down and up, and a device that fails for good, while kernels drive its queues: each PE says it once,
# and goes on.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${start:?}"
on_host_platform || skip 'the simulated device reaches host memory alone'
has HAVE_MLX5DV || skip 'this build is without libmlx5'
here=${0%/*}
export XIO_NIC_FAMILY=mlx5 XIO_BACKEND=hw XIO_ROUTE=rdma XIO_LOG_LEVEL=info

# strike HOW (TIMES TEXT)...: the program ends well, and each text is in the log of both PEs so many times.
strike() {
  local how=$1 out status
  out=$("$here/run" "$start" -n 2 timeout -k 5 60 "$builddir/tests/uverbs/struck" "$how" 2>&1)
  status=$?
  shift
  while [ $# -gt 0 ]; do
    if [ "$(grep -c -- "$2" <<<"$out")" != "$1" ]; then
      echo "FAIL $how: not $1 times: $2"
      status=1
    fi
    shift 2
  done
  if [ $status = 0 ]; then
    echo "ok   $how"
  else
    fail "$how: status $status" <(cat <<<"$out")
  fi
}
strike link 2 'mlx5_0 port 1: the link is down; .*xio_ctx_recover' 2 'mlx5_0 port 1: the link is up'
# Both PEs have opened their devices twice.
strike fatal 2 'mlx5_0: the device has failed and does nothing any more' 4 'rdma: mlx5 on mlx5_0'
finish events
