#!/bin/bash
# SPDX-License-Identifier: MIT
# What one op executes on the software AMD GPU (docs/amdgpu.md), by kernels of one op and of eleven: one more op costs
# that many wave instructions, and of these those that access scratch memory, wait, and write caches back; the kernel of
# one op executes so many in all, and runs through so many 64-byte lines of code.
# Compares with executed.table beside this script; more than 10 % above it is an error. In a build for gfx90a:
#   tests/device/executed.sh            compares
#   tests/device/executed.sh --update   keeps what is now
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${XIO_AMDGPU_BUILD:-$PWD}
kept=$here/executed.table
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT

# measure ROUTE: a line for each op of executed.hip by this route
measure() {
  : >"$counts"
  XIO_AMDGPU_GPUS=2 XIO_ROUTE=$1 XIO_AMDGPU_COUNTS=$counts "$here/../amdgpu/run" "$build/xiorun" -n 2 \
    "$build/tests/device/executed" >&2
  awk -v route="$1" -f "$here/executed.awk" "$counts"
}

{
  echo '# op ROUTE:NAME INSTRUCTIONS SCRATCH-ACCESSES WAITS WRITE-BACKS KERNEL LINES: clang 15, gfx90a; rdma as mlx5'
  for route in direct rdma; do measure $route; done
} >"$build/tests/device/executed.now"
cat "$build/tests/device/executed.now"
if [ "${1-}" = --update ]; then
  cp "$build/tests/device/executed.now" "$kept"
else
  awk -v names='instructions scratch-accesses waits write-backs kernel lines' -v script=executed.sh \
    -f "$here/cost_compare.awk" "$kept" "$build/tests/device/executed.now"
fi
