#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside a Debian of the suite, on the tree in /src: XIO's machine code for a GPU that Debian 12's HIP is too old for, by
# the suite's HIP, ROCr and libhsakmt on the software GPU (docs/amdgpu.md).
#   amdgpu.sh SUITE [TARGET [CHECK...]]    gfx942; some of these: kernels hip plain late
set -euo pipefail
suite=${1:?}
target=${2:-gfx942}
read -ra checks <<<"${*:3}"
if [ ${#checks[@]} = 0 ]; then checks=(kernels hip plain late); fi
wants() { [[ " ${checks[*]} " == *" $1 "* ]]; }
cd /src
# shellcheck source=tests/suites/packages.sh
. tests/suites/packages.sh
apt-get update -qq
# shellcheck disable=SC2046  # a list
install_packages $(packages_of host_packages hip_packages) libllvm19 rocminfo ca-certificates libdrm-dev ccache
echo "$suite: hipcc $(version_of hipcc), libamdhip64 $(version_of libamdhip64-5), ROCr $(version_of libhsa-runtime64-1), libhsakmt $(version_of libhsakmt1)"

build=/build-$target
mkdir -p "$build"
./autogen.sh >/autogen.log 2>&1
cd "$build"
if [ ! -e Makefile ]; then
  /src/configure --with-gpu=hip "XIO_HIP_ARCH=$target" CFLAGS='-O2 -Wall -Wextra' CXXFLAGS='-O2 -Wall -Wextra' >configure.log 2>&1 || {
    tail -n 20 configure.log
    exit 1
  }
fi
targets=(libxio_amdgpu.la tests/amdgpu/prepare xiorun)
if wants kernels; then targets+=(tests/amdgpu/known tests/amdgpu/kernels tests/amdgpu/opcodes); fi
if wants hip; then targets+=(tests/amdgpu/hip_calls tests/amdgpu/share); fi
if wants plain; then targets+=(examples/hello_put tests/mpi/{rma,atomics,signals,sync}); fi
if wants late; then targets+=(tests/mpi/litmus); fi
begin=$SECONDS
make -k -j"$(nproc)" "${targets[@]}" >make.log 2>&1 || {
  grep -E -m 20 '(: error|: fatal error|\*\*\*)' make.log
  exit 1
}
echo "$suite: ${#targets[@]} targets built for $target in $((SECONDS - begin)) s; warnings: $(grep -c 'warning:' make.log || true)"

export XIO_TEST_BUILDDIR=$build XIO_AMDGPU_BUILD=$build XIO_AMDGPU_TARGET=$target
run=/src/tests/amdgpu/run
if wants kernels; then
  ran 'opcodes' tests/amdgpu/opcodes --gtest_brief=1
  # Not at -O0: six of sixteen kernels that clang 17 makes for gfx942 fail there, and some for gfx90a; the cause is not known.
  ran "kernels at -O1 to -O3" env LEVELS='1 2 3' bash /src/tests/amdgpu/kernels.sh
fi
if wants hip; then
  # shellcheck disable=SC2016  # for the inner shell
  ran rocminfo bash -c '"$0" rocminfo | grep "^  Name: *$1"' $run "$target"
  for gpus in 1 2; do
    for program in hip_calls share; do
      ran "$program, $gpus GPUs" env XIO_AMDGPU_GPUS=$gpus timeout -k 5 200 $run tests/amdgpu/$program
    done
  done
fi
# Two PEs, on two GPUs. Deadlines are for silicon.
export XIO_AMDGPU_GPUS=2 XIO_TIMEOUT_MS=120000
if wants plain; then
  for route in direct rdma sdma; do
    ran "hello_put by $route" env XIO_ROUTE=$route timeout -k 5 120 $run ./xiorun -n 2 examples/hello_put
    for program in rma atomics signals sync; do
      ran "$program by $route" env XIO_ROUTE=$route timeout -k 5 400 $run ./xiorun -n 2 tests/mpi/$program
    done
  done
fi
if wants late; then
  for route in direct rdma sdma; do
    ran "litmus by $route with late memory" env XIO_AMDGPU_MEMORY=adversary XIO_ROUTE=$route timeout -k 5 600 $run ./xiorun -n 2 tests/mpi/litmus
  done
fi
echo "$suite: $failures failed"
exit $((failures != 0))
