#!/bin/bash
# SPDX-License-Identifier: MIT
# What one op executes on the software AMD GPU (docs/amdgpu.md), by kernels of one op and of eleven: one more op costs
# that many wave instructions, and of these those that access scratch memory, wait, and write caches back; the kernel of
# one op executes so many in all, and runs through so many 64-byte lines of code.
# A wave of gfx1100 has 32 lanes, so 256 of them are eight waves there and four elsewhere; each wave's instructions count.
# Compares with executed.table (gfx90a), executed.gfx942.table or executed.gfx1100.table beside this script; more than 10 %
# above it is an error. In a build for the target that XIO_AMDGPU_TARGET names, else gfx90a:
#   tests/device/executed.sh            compares
#   tests/device/executed.sh --update   keeps what is now
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${XIO_AMDGPU_BUILD:-$PWD}
target=${XIO_AMDGPU_TARGET:-gfx90a}
table=executed.$target.table
# Its GPUs are on PCIe alone.
if [ "$target" = gfx1100 ]; then export HSA_FORCE_FINE_GRAIN_PCIE=1; fi
if [ "$target" = gfx90a ]; then table=executed.table; fi
kept=$here/$table now=$build/tests/device/${table%.table}.now
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
  clang=$(hipcc --version 2>/dev/null | sed -n 's/.*clang version \([0-9]*\).*/\1/p')
  echo "# op ROUTE:NAME INSTRUCTIONS SCRATCH-ACCESSES WAITS WRITE-BACKS KERNEL LINES: clang $clang, $target; rdma as mlx5"
  for route in direct rdma; do measure $route; done
} >"$now"
cat "$now"
if [ "${1-}" = --update ]; then
  cp "$now" "$kept"
else
  if ! grep -qxF "$(head -n 1 "$now")" "$kept"; then echo "$table is of another compiler: $(head -n 1 "$kept")"; fi
  awk -v names='instructions scratch-accesses waits write-backs kernel lines' -v script=executed.sh \
    -f "$here/cost_compare.awk" "$kept" "$now"
fi
