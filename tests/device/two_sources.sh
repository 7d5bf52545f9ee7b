#!/bin/bash
# SPDX-License-Identifier: MIT
# That a program may have several sources with kernels: no name of xio_device.hpp is defined twice.
set -uo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
make_work
checks=0

# links NAME COMPILER...: both sources compile, and go together.
links() {
  local name=$1 source
  shift
  checks=$((checks + 1))
  for source in first second; do
    if ! "$@" -std=c++20 -O1 -I"$srcdir/include" -DKERNEL=$source -c -o "$work/$source.o" "$srcdir/tests/device/two_sources.hip" \
      >"$work/log" 2>&1; then
      fail "$name: it does not compile" <(tail -n 10 "$work/log")
      return
    fi
  done
  if ! ld -r -o "$work/both.o" "$work/first.o" "$work/second.o"; then
    fail "$name: the two do not go together"
  fi
}

leaves() { [ -z "$("$srcdir/tests/leave_out" two_sources "$1")" ]; }
links host "${CXX%% *}" -DXIO_PLATFORM_HOST=1 -x c++
# Device code of two sources is never linked together, so the host's half of each is enough; the other takes ten times as long.
if [ -n "$HIPCC" ] && ! leaves hip; then links hip "$HIPCC" -x hip --offload-arch=gfx90a --cuda-host-only -DXIO_PLATFORM_HIP=1; fi
if [ -n "$NVCC" ] && ! leaves cuda; then links cuda sh "$srcdir/build-aux/nvcc-as-cxx" "$NVCC" -ccbin "${CXX##* }" -x cu -DXIO_PLATFORM_CUDA=1; fi
finish "two_sources, $checks platforms"
