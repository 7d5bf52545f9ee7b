#!/bin/bash
# SPDX-License-Identifier: MIT
# What one op costs in a kernel on gfx90a: instructions (of all that the op can reach, so with every engine and every NIC
# family), registers, scratch memory. Compares with cost.table beside this script; more than 10 % above it is an error.
#   XIO_TEST_BUILDDIR=BUILD tests/device/cost.sh --update        keeps what is now
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
here=$srcdir/tests/device
out=$builddir/tests/device
kept=$here/cost.table

# shellcheck disable=SC2153  # from env.sh
if [ -z "$HIPCC" ]; then skip "no hipcc: device code for AMD is not compiled"; fi
compiler="$("$HIPCC" --version 2>/dev/null | grep -o 'clang version [0-9]*' | head -n 1), gfx90a, -O2"
if [ "${1-}" != --update ] && ! grep -qxF "# $compiler" "$kept"; then
  skip "the kept figures are of another compiler ($(sed -n 's/^# \(clang.*\)/\1/p' "$kept")) than this one ($compiler)"
fi

mkdir -p "$out"
"$HIPCC" -x hip -std=c++20 -O2 -Wall -Wextra -Werror -Wno-unused-command-line-argument -DXIO_PLATFORM_HIP=1 \
  -I"$srcdir/include" --cuda-device-only --offload-arch=gfx90a -S -o "$out/cost.s" "$here/cost.hip"
{
  echo "# $compiler"
  echo "# op NAME INSTRUCTIONS VGPRS AGPRS SGPRS SCRATCH-BYTES: the kernel and all that it calls"
  echo "# function NAME INSTRUCTIONS: for those who look where they are"
  awk -f "$here/cost.awk" "$out/cost.s" | c++filt -p |
    sed -E '/^function/{s/xio::dev:://g; s/^function [a-z_]+ ([a-z_:]+<)/function \1/}' | sort -k1,1r -k2
} >"$out/cost.now"
cat "$out/cost.now"

if [ "${1-}" = --update ]; then
  cp "$out/cost.now" "$kept"
else
  awk -f "$here/cost_compare.awk" "$kept" "$out/cost.now"
fi
