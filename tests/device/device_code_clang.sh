#!/bin/bash
# SPDX-License-Identifier: MIT
# Device code for AMD GPUs as a clang makes it that is newer than Debian 12's hipcc, for all targets of XIO. Neither HIP
# nor ROCm need be there: tests/device/clang has what the device headers take from HIP.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

by=clang
mapfile -t targets < <("$srcdir/tests/leave_out" device_code_clang gfx{90a,942,950,1030,1100,1201})
for name in clang-22 clang-23 clang-21 clang-20 clang; do
  if ! command -v $name >/dev/null; then continue; fi
  # -nogpulib and -nogpuinc: no device libraries, and none of the headers that clang would take from HIP by itself.
  compiler=("$(command -v $name)" -x hip -std=c++20 -O2 -nogpulib -nogpuinc -DXIO_PLATFORM_HIP=1
    -I"$srcdir/tests/device/clang" -I"$srcdir/include" --cuda-device-only)
  # shellcheck source=tests/device/assembly.sh
  . "$srcdir/tests/device/assembly.sh"
  unknown=
  for target in "${targets[@]}"; do knows "$target" || unknown="$unknown $target"; done
  if [ -z "$unknown" ]; then
    "${compiler[0]}" --version | head -n 1
    read_targets "${targets[@]}"
    exit
  fi
  echo "$name does not know$unknown"
done
skip "no clang for ${targets[*]}: install Debian's clang-22 (./quickstart check does)"
