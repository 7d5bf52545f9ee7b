#!/bin/bash
# SPDX-License-Identifier: MIT
# Kernels compiled by hipcc, or by the command KERNEL_COMPILER, for XIO_AMDGPU_TARGET, else gfx90a, at each level of
# optimization, or those of LEVELS, run by the interpreter.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
target=${XIO_AMDGPU_TARGET:-gfx90a}
read -ra compiler <<<"${KERNEL_COMPILER:-$HIPCC}"
if [ ${#compiler[@]} = 0 ]; then skip "no hipcc: kernels for $target are not compiled"; fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for level in ${LEVELS:-0 1 2 3}; do
  code=$folder/kernels-O$level
  "${compiler[@]}" -x hip --offload-arch="$target" -std=c++20 "-O$level" -Wno-unused-command-line-argument --cuda-device-only -c \
    -o "$code" "$srcdir/tests/amdgpu/kernels.hip"
  echo "== -O$level"
  "$XIO_TEST_BUILDDIR/tests/amdgpu/known" "$code"
  XIO_AMDGPU_CODE=$code "$XIO_TEST_BUILDDIR/tests/amdgpu/kernels" --gtest_brief=1
done
