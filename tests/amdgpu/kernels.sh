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

# Debian 12's libraries for the device lack the file that names gfx1100; its one number is made here.
library=()
if [ "$target" = gfx1100 ]; then
  known=$("$HIPCC" -### -x hip --offload-arch=gfx1030 --cuda-device-only -c "$srcdir/tests/amdgpu/kernels.hip" 2>&1 |
    grep -o '"[^"]*/oclc_isa_version_1030.bc"' | head -n 1 | tr -d '"')
  if [ -n "$known" ] && [ ! -e "${known%1030.bc}1100.bc" ]; then
    mkdir "$folder/bitcode"
    ln -s "$(dirname "$known")"/*.bc "$folder/bitcode/"
    clang=$("$HIPCC" --version 2>/dev/null | sed -n 's/^InstalledDir: //p')/clang
    echo 'int const __attribute__((address_space(4), visibility("protected"))) __oclc_ISA_version = 11000;' |
      "$clang" -x c -target amdgcn-amd-amdhsa -nogpulib -c -emit-llvm -o "$folder/bitcode/oclc_isa_version_1100.bc" -
    library=("--rocm-device-lib-path=$folder/bitcode")
  fi
fi
for level in ${LEVELS:-0 1 2 3}; do
  code=$folder/kernels-O$level
  "${compiler[@]}" -x hip --offload-arch="$target" -std=c++20 "-O$level" -Wno-unused-command-line-argument "${library[@]}" --cuda-device-only -c \
    -I"$srcdir/include" -o "$code" "$srcdir/tests/amdgpu/kernels.hip"
  echo "== -O$level"
  "$XIO_TEST_BUILDDIR/tests/amdgpu/known" "$code"
  XIO_AMDGPU_CODE=$code "$XIO_TEST_BUILDDIR/tests/amdgpu/kernels" --gtest_brief=1
done
