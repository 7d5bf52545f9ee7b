#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside a Debian of the suite, on the tree in /src: XIO's machine code for a GPU that Debian 12's HIP is too old for, by
# the suite's HIP, ROCr and libhsakmt on the software GPU (docs/amdgpu.md): the interpreter's own tests, then all that
# make check-amd runs.
#   amdgpu.sh SUITE TARGET... [CHECK...]    targets gfx942, gfx1100; some of these checks: kernels check
# The build is kept in /build-amdgpu, so that a run that was stopped compiles the rest. With ONLY=REGEX `check` is a part (tests/amdgpu/check).
set -euo pipefail
suite=${1:?}
targets=() checks=()
for word in "${@:2}"; do
  case $word in
    gfx*) targets+=("$word") ;;
    kernels | check) checks+=("$word") ;;
    *) echo "amdgpu.sh: '$word' is no target and no check" && exit 2 ;;
  esac
done
[ ${#targets[@]} != 0 ] || { echo 'amdgpu.sh: say which target' && exit 2; }
if [ ${#checks[@]} = 0 ]; then checks=(kernels check); fi
wants() { [[ " ${checks[*]} " == *" $1 "* ]]; }
whole=$SECONDS
cd /src
# shellcheck source=tests/suites/packages.sh
. tests/suites/packages.sh
apt-get update -qq
# Not the newest: Debian 13 has got 22, which knows no device library or header of HIP 5.7.
clang=19
# shellcheck disable=SC2046  # a list
install_packages $(packages_of host_packages hip_packages) "clang-$clang" "libllvm$clang" rocminfo ca-certificates libdrm-dev ccache kmod procps
echo "$suite: hipcc $(version_of hipcc), libamdhip64 $(version_of libamdhip64-5), ROCr $(version_of libhsa-runtime64-1), libhsakmt $(version_of libhsakmt1)"
# Once: make renews what autogen.sh makes where its sources changed.
if [ ! -e autogen.done ]; then ./autogen.sh >/autogen.log 2>&1 && touch autogen.done; fi

# configured: one build for all targets, in $build
configured() {
  mkdir -p "$build" && cd "$build" || return 1
  if [ -e Makefile ]; then return; fi
  /src/configure --with-gpu=host CFLAGS='-O2 -Wall -Wextra' CXXFLAGS='-O2 -g1 -Wall -Wextra' >configure.log 2>&1 || {
    tail -n 20 configure.log
    rm -f Makefile
    return 1
  }
}

run_kernels() {
  local begin=$SECONDS devices tools
  make -j"$(nproc)" tests/amdgpu/known tests/amdgpu/kernels tests/amdgpu/opcodes >make.log 2>&1 || {
    grep -E -m 20 '(: error|: fatal error|\*\*\*)' make.log
    return 1
  }
  echo "$suite, $target: the interpreter's tests built in $((SECONDS - begin)) s; warnings: $(grep -c 'warning:' make.log || true)"
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
}

# run_check: tests/amdgpu/check, whose last line counts what passed and failed. A part that it does not run here is a failure too.
run_check() {
  local status=0 counted
  bash /src/tests/amdgpu/check | tee "$build/check.log" || status=$?
  counted=$(sed -n 's/^check-amd: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$build/check.log" | tail -n 1)
  [ -n "$counted" ] || return 1
  passed=$((passed + ${counted% *})) failures=$((failures + ${counted#* }))
  skipped=$((skipped + $(grep -c '^not run: ' "$build/check.log" || true)))
  [ $status = 0 ] || [ "${counted#* }" != 0 ]
}

summary='' all_good=yes
for target in "${targets[@]}"; do
  build=/build-amdgpu
  passed=0 skipped=0 failures=0 begin=$SECONDS
  export XIO_TEST_BUILDDIR=$build XIO_AMDGPU_TARGET=$target XIO_AMDGPU_CHECK_BUILD=$build
  if configured; then
    if wants kernels; then run_kernels || failures=$((failures + 1)); fi
    if wants check; then run_check || failures=$((failures + 1)); fi
  else
    failures=1
  fi
  summary+="${summary:+; }$target: $passed passed, $failures failed, $skipped not run"
  if [ $failures != 0 ] || [ $skipped != 0 ]; then all_good=no; fi
  echo "$suite, $target: $passed passed, $failures failed, $skipped not run ($((SECONDS - begin)) s)"
done
echo "check-amd-debian13: $summary ($((SECONDS - whole)) s)"
[ $all_good = yes ]
