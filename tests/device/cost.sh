#!/bin/bash
# SPDX-License-Identifier: MIT
# What one op costs in a kernel: instructions (of all that the op can reach), registers, scratch memory; with every
# engine and every NIC family, and (direct+mlx5:...) with those alone; and kernels of the examples with the engines that
# they need. On gfx90a as hipcc makes it, on gfx942 and gfx1100 as a newer clang does. Compares with cost.table,
# cost.gfx942.table and cost.gfx1100.table beside this script; more than 10 % above them is an error, and a wave of a SIMD
# less.
#   XIO_TEST_BUILDDIR=BUILD tests/device/cost.sh --update        keeps what is now
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
here=$srcdir/tests/device
out=$builddir/tests/device
mode=${1-}
tried=0
mkdir -p "$out"

# As in assembly.sh, of what was compiled last; the table comes by standard output.
lanes_kept() {
  if [ ! -x "$builddir/xio-verify" ]; then return; fi
  "$builddir/xio-verify" --code-object "$out/cost.s" >&2
}

# listing NAME FLAG...: what the kernels of cost.hip cost when compiled so; NAME stands before each op.
listing() {
  local name=$1
  shift
  "${compiler[@]}" "$@" --cuda-device-only --offload-arch="$target" -S -o "$out/cost.s" "$here/cost.hip"
  lanes_kept
  awk -f "$here/cost.awk" "$out/cost.s" | c++filt -p |
    sed -E '/^function/{s/xio::dev:://g; s/^function [a-z_]+ ([a-z_:]+<)/function \1/}' |
    sed -E "s/^(op|function) /\1 $name/"
}

# examples PREFIX KERNELS FLAG...: kernels of cost_examples.hip, as cost.awk's -v kernels has them
examples() {
  local prefix=$1 kernels=$2
  shift 2
  "${compiler[@]}" "$@" "${host_calls[@]}" --cuda-device-only --offload-arch="$target" -S -o "$out/cost.s" \
    "$here/cost_examples.hip"
  lanes_kept
  awk -v kernels="$kernels" -f "$here/cost.awk" "$out/cost.s" | sed "s/^op /op $prefix/"
}

# compare TABLE: the compiler and target at hand.
compare() {
  local kept=$here/$1 now=$out/${1%.table}.now
  local by
  by="$("${compiler[0]}" --version 2>/dev/null | grep -o 'clang version [0-9]*' | head -n 1), $target, -O2"
  if [ "$mode" != --update ] && ! grep -qxF "# $by" "$kept"; then
    echo "$1 is of another compiler ($(sed -n 's/^# \(clang.*\)/\1/p' "$kept")) than this one ($by)"
    return
  fi
  {
    echo "# $by"
    echo "# op NAME INSTRUCTIONS VGPRS AGPRS SGPRS SCRATCH-BYTES WAVES: the kernel and all that it calls"
    echo "# function NAME INSTRUCTIONS: for those who look where they are; not kept"
    {
      listing ''
      listing direct+mlx5: -DXIO_ENGINES=direct+rdma -DXIO_FAMILIES=mlx5
      examples direct+mlx5: 'spread=halo dispatch=moe_dispatch expert=moe_expert' -DXIO_ENGINES=direct+rdma \
        -DXIO_FAMILIES=mlx5
      examples direct+mlx5+nvme: fetch=kv_fetch -DCOST_OF_STORAGE -DXIO_ENGINES=direct+rdma+nvme -DXIO_FAMILIES=mlx5
    } | sort -k1,1r -k2
  } >"$now"
  cat "$now"
  tried=$((tried + 1))
  if [ "$mode" = --update ]; then
    grep -v '^function' "$now" >"$kept"
  else
    awk -f "$here/cost_compare.awk" "$kept" "$now"
  fi
}

flags=(-x hip -std=c++20 -O2 -Wall -Wextra -Werror -Wno-unused-command-line-argument -DXIO_PLATFORM_HIP=1)
# shellcheck disable=SC2153  # from env.sh
if [ -n "$HIPCC" ]; then
  target=gfx90a
  compiler=("$HIPCC" "${flags[@]}" -I"$srcdir/include")
  host_calls=()
  compare cost.table
fi
if command -v clang-22 >/dev/null; then
  compiler=(clang-22 "${flags[@]}" -nogpulib -nogpuinc -I"$here/clang" -I"$srcdir/include")
  host_calls=(-include "$here/clang/host_calls.h")
  for target in gfx942 gfx1100; do compare cost.$target.table; done
fi
if [ $tried = 0 ]; then skip "no compiler of which figures are kept: neither Debian 12's hipcc nor clang-22"; fi
