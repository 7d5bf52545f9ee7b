#!/bin/bash
# SPDX-License-Identifier: MIT
# The public headers under every compiler that is here, warnings being errors: the same source for host, AMD and NVIDIA.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
sources=("$srcdir/tests/device/gates.hip" "$srcdir/tests/device/rocshmem.hip")
include=(-I"$srcdir/include" -I"$srcdir/include/xio/compat")
# Programs may be compiled with more warnings than XIO is: its headers add none.
warnings=(-Wall -Wextra -Wold-style-cast -Wshadow -Wconversion -Werror)
tried=0

for compiler in g++ clang++; do
  if ! command -v $compiler >/dev/null; then continue; fi
  $compiler -x c++ -std=c++20 "${warnings[@]}" -DXIO_PLATFORM_HOST=1 "${include[@]}" -fsyntax-only "${sources[@]}"
  if said=$($compiler -x c++ -std=c++17 -DXIO_PLATFORM_HOST=1 "${include[@]}" -fsyntax-only "${sources[0]}" 2>&1) ||
    ! grep -m 1 'error:' <<<"$said" | grep -q 'need C++20'; then
    echo "$compiler: C++17 is not refused at once: $said" && exit 1
  fi
  echo "$compiler: host"
  tried=$((tried + 1))
done
if [ -n "$NVCC" ]; then
  out=$builddir/tests/device/gates.ptx
  mkdir -p "${out%/*}"
  for source in "${sources[@]}"; do
    "$NVCC" -x cu -std=c++20 -DXIO_PLATFORM_CUDA=1 "${include[@]}" -Xcompiler -Wall,-Wextra -Werror all-warnings \
      -arch=compute_90 --ptx -o "$out" "$source"
  done
  echo "nvcc: cuda"
  rm -f "$out"
  tried=$((tried + 1))
fi
if [ $tried = 0 ]; then skip "neither g++ nor clang++ nor nvcc"; fi
