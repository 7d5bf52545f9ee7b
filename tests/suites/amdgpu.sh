#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside a Debian of the suite, on the tree in /src: XIO's machine code for a GPU that Debian 12's HIP is too old for, by
# the suite's HIP, ROCr and libhsakmt on the software GPU (docs/amdgpu.md): the interpreter's own tests, then all that
# make check-amd runs.
#   amdgpu.sh SUITE TARGET [CHECK...]    gfx942 or gfx1100; some of these: kernels check
set -euo pipefail
suite=${1:?}
target=${2:?}
read -ra checks <<<"${*:3}"
if [ ${#checks[@]} = 0 ]; then checks=(kernels check); fi
wants() { [[ " ${checks[*]} " == *" $1 "* ]]; }
cd /src
# shellcheck source=tests/suites/packages.sh
. tests/suites/packages.sh
apt-get update -qq
# Not the newest: Debian 13 has got 22, which knows no device library or header of HIP 5.7.
clang=19
# shellcheck disable=SC2046  # a list
install_packages $(packages_of host_packages hip_packages) "clang-$clang" "libllvm$clang" rocminfo ca-certificates libdrm-dev ccache kmod procps
echo "$suite: hipcc $(version_of hipcc), libamdhip64 $(version_of libamdhip64-5), ROCr $(version_of libhsa-runtime64-1), libhsakmt $(version_of libhsakmt1)"

build=/build-$target
mkdir -p "$build"
./autogen.sh >/autogen.log 2>&1
cd "$build"
if [ ! -e Makefile ]; then
  /src/configure --with-gpu=hip "XIO_HIP_ARCH=$target" CFLAGS='-O2 -Wall -Wextra' CXXFLAGS='-O2 -g1 -Wall -Wextra' >configure.log 2>&1 || {
    tail -n 20 configure.log
    exit 1
  }
fi
export XIO_TEST_BUILDDIR=$build XIO_AMDGPU_BUILD=$build XIO_AMDGPU_TARGET=$target XIO_AMDGPU_CHECK_BUILD=$build
if wants kernels; then
  begin=$SECONDS
  make -j"$(nproc)" tests/amdgpu/known tests/amdgpu/kernels tests/amdgpu/opcodes >make.log 2>&1 || {
    grep -E -m 20 '(: error|: fatal error|\*\*\*)' make.log
    exit 1
  }
  echo "$suite: the interpreter's tests built in $((SECONDS - begin)) s; warnings: $(grep -c 'warning:' make.log || true)"
  # Each test names the GPU that it is for; of the others' gfx1100 has a part.
  ran opcodes env -u XIO_AMDGPU_TARGET tests/amdgpu/opcodes --gtest_brief=1
  if [ "$target" = gfx1100 ]; then ran 'opcodes in waves of 64 lanes' bash /src/tests/amdgpu/opcodes_gfx1100.sh; fi
  ran "kernels at -O1 to -O3 by hipcc" env LEVELS='1 2 3' bash /src/tests/amdgpu/kernels.sh
  # hipcc's clang 17 makes wrong code at -O0: behind a branch it reloads VGPRs before it restores EXEC (LLVM's pull
  # requests 69923 and 69924, of version 18).
  devices=$(dirname "$(find /usr/lib -name ocml.bc | head -n 1)")
  tools=$(dirname "$(find /usr/lib/llvm-*/bin -name clang-offload-bundler | head -n 1)")
  ran "kernels at -O0 by clang $clang" env LEVELS=0 \
    KERNEL_COMPILER="clang++-$clang -B $tools --hip-path=/usr --rocm-path=/usr --hip-device-lib-path=$devices" bash /src/tests/amdgpu/kernels.sh
fi
if wants check; then bash /src/tests/amdgpu/check || failures=$((failures + 1)); fi
echo "$suite, $target: $failures failed"
exit $((failures != 0))
