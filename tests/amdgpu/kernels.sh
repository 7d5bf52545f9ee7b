#!/bin/bash
# SPDX-License-Identifier: MIT
# Kernels compiled by hipcc for gfx90a at each level of optimization, run by the interpreter.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
if [ -z "$HIPCC" ]; then skip "no hipcc: kernels for gfx90a are not compiled"; fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for level in 0 1 2 3; do
  code=$folder/kernels-O$level
  "$HIPCC" -x hip --offload-arch=gfx90a -std=c++20 "-O$level" -Wno-unused-command-line-argument --cuda-device-only -c \
    -o "$code" "$srcdir/tests/amdgpu/kernels.hip"
  echo "== -O$level"
  "$XIO_TEST_BUILDDIR/tests/amdgpu/known" "$code"
  XIO_AMDGPU_CODE=$code "$XIO_TEST_BUILDDIR/tests/amdgpu/kernels" --gtest_brief=1
done
