#!/bin/bash
# SPDX-License-Identifier: MIT
# Compiles device code for AMD GPUs without a GPU, warnings being errors, and reads the assembly.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
if [ -z "$HIPCC" ]; then skip "no hipcc: device code for AMD is not compiled"; fi

here=$srcdir/tests/device
out=$builddir/tests/device
mkdir -p "$out"

assembly() {
  # hipcc hands its linker flags to the compiler, which tells that it does not use them.
  "$HIPCC" -x hip -std=c++20 -O2 -Wall -Wextra -Werror -Wno-unused-command-line-argument -DXIO_PLATFORM_HIP=1 \
    -I"$srcdir/include" --cuda-device-only --offload-arch="$1" -S -o "$out/gates-$1.s" "$here/gates.hip"
  echo "$1: compiled, $(grep -c '^\.Lfunc_end' "$out/gates-$1.s") kernels"
}

# kernel NAME FILE: the instructions of one kernel.
kernel() { awk -v start="$1:" '$1 == start {on = 1} /^\.Lfunc_end/ {on = 0} on' "$2"; }

# wide NAME LEAST: at least that many 16-byte stores to memory, and none of 4 or 8 bytes.
wide() {
  local count
  count=$(kernel "$1" "$out/gates-gfx90a.s" | grep -cE '^[[:space:]]*(global|flat)_store_dwordx4' || true)
  if [ "$count" -lt "$2" ]; then
    echo "$1: $count wide stores (dwordx4), expected $2"
    kernel "$1" "$out/gates-gfx90a.s" | grep -E '_store_' || true
    return 1
  fi
  echo "$1: $count wide stores"
}

# past_caches NAME: it loads from memory, and never without the bit that goes by the caches.
past_caches() {
  local loads
  loads=$(kernel "$1" "$out/gates-gfx90a.s" | grep -E '^[[:space:]]*(global|flat)_load_' || true)
  if [ -z "$loads" ] || grep -v ' glc' <<<"$loads"; then
    echo "$1: these of its loads, if any, may be of stale cache lines"
    return 1
  fi
  echo "$1: $(wc -l <<<"$loads") loads past the caches"
}

# shellcheck disable=SC2153  # from env.sh
for arch in gfx90a gfx1030; do assembly $arch; done
wide gate_entry 4
wide gate_entry_mlx5 4
wide gate_entry_sdma 4
wide gate_entry_nvme 4
past_caches gate_get_ends
awk -v names="gate_announce_mlx5 gate_announce_sdma gate_announce_nvme" -f "$here/release_order.awk" "$out/gates-gfx90a.s"
echo "every doorbell follows a system-scope release"
