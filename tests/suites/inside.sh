#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside a Debian of the suite, on the tree in /src: installs what quickstart names, builds the kernel module, device
# code for GPUs newer than Debian 12's hipcc knows, then library, tools, examples, benchmarks and tests for the host and for
# AMD GPUs as far as the suite's hipcc goes. Errors of any of it are errors.
set -euo pipefail
suite=${1:?}
cd /src
jobs=$(nproc)
failures=0
lap() { printf '%s: %-64s %5d s\n' "$suite" "$1" $((SECONDS - begin)) && begin=$SECONDS; }
begin=$SECONDS

# fails WHAT LOG: what a log says of errors.
fails() {
  grep -m 10 -iE '(error:|fatal error|\*\*\*|warning:)' "$2" || tail -n 20 "$2"
  echo "$suite: $1 failed"
  failures=$((failures + 1))
  begin=$SECONDS
}

# shellcheck source=tests/suites/packages.sh
. tests/suites/packages.sh
apt-get update -qq
clang=$(apt-cache pkgnames clang- | sed -n 's/^clang-\([0-9][0-9]*\)$/\1/p' | sort -n | tail -n 1)
# shellcheck disable=SC2046  # a list
install_packages $(packages_of host_packages hip_packages) "clang-$clang" "lld-$clang" ca-certificates libdrm-dev ccache linux-headers-amd64 kmod
lap "${installed:?} packages"
echo "  g++ $(version_of g++), clang $clang, hipcc $(version_of hipcc), libhsa-runtime-dev $(version_of libhsa-runtime-dev)"
echo "  libhsakmt-dev $(version_of libhsakmt-dev), libibverbs-dev $(version_of libibverbs-dev)"

# ---- the kernel module, for the suite's kernel -------------------------------------------------------------------
headers=$(find /lib/modules -maxdepth 2 -name build | sort -V | tail -n 1)
rm -rf /build-kmod
cp -r kernel/xio /build-kmod
if make -s -C /build-kmod KDIR="$headers" W=1 >/build-kmod.log 2>&1 && ! grep -qi 'warning:' /build-kmod.log; then
  lap "kernel module for $(modinfo -F vermagic /build-kmod/xio.ko | cut -d' ' -f1)"
else
  fails 'the kernel module' /build-kmod.log
fi

# ---- device code for each GPU ------------------------------------------------------------------------------------
# Each with the lanes of its waves: HIP's headers ask for a macro that clang stopped to define in version 20.
targets=(gfx942/64 gfx950/64 gfx1100/32 gfx1201/32)
source=tests/device/gates.hip
flags=(-x hip -std=c++20 -O1 -Wall -Wextra -Werror -Wno-unused-command-line-argument -Wno-pass-failed -DXIO_PLATFORM_HIP=1
  -Iinclude --cuda-device-only -S -o /dev/null)
# orders TARGET COMPILER...: whether releases wait and gets read past caches in what that compiler makes, as in make check.
orders() {
  local target=$1 out=/$1.orders.s
  shift
  if "$@" "${flags[@]}" -O2 --offload-arch="$target" tests/device/orders.hip -o "$out" >"$out.log" 2>&1 &&
    awk -v target="$target" -v least="release_ 44 post_ 8 fetch_ 8" -f tests/device/orders.awk "$out" >>"$out.log"; then
    lap "$target: releases wait and gets are fresh by ${1##*/}"
  else
    sed -n 1,10p "$out.log"
    fails "the order of device code for $target by $1" "$out.log"
  fi
}
known=()
for entry in "${targets[@]}"; do
  target=${entry%/*}
  # Device code alone needs no device library but for what the headers of HIP declare.
  if command -v hipcc >/dev/null && hipcc "${flags[@]}" --offload-arch="$target" "$source" >"/$target.log" 2>&1; then
    known+=("$target")
    lap "$target: device code by hipcc"
    orders "$target" hipcc
  elif "clang++-$clang" "${flags[@]}" -nogpulib "-D__AMDGCN_WAVEFRONT_SIZE=${entry#*/}" --offload-arch="$target" "$source" \
    >"/$target.clang.log" 2>&1; then
    lap "$target: device code by clang $clang alone"
    orders "$target" "clang++-$clang" -nogpulib "-D__AMDGCN_WAVEFRONT_SIZE=${entry#*/}"
    echo "  for hipcc says: $(grep -m 1 error "/$target.log" | cut -c1-100)"
  else
    fails "device code for $target by hipcc" "/$target.log"
    fails "device code for $target by clang $clang" "/$target.clang.log"
  fi
done

# ---- everything --------------------------------------------------------------------------------------------------
# configured FOLDER OPTION...: no debug information, for nobody looks; libtool by the shell that is quickest.
configured() {
  rm -rf "$1"
  mkdir -p "$1"
  if (cd "$1" && CONFIG_SHELL=/bin/sh /bin/sh /src/configure "${@:2}" CFLAGS='-O1 -Wall -Wextra' CXXFLAGS='-O1 -Wall -Wextra') \
    >"$1.log" 2>&1; then
    sed -n '/^XIO .*, into/,/^$/p' "$1.log" | grep -E '(: no; lost|^  (platform|verbs|hsa|hsakmt):)' || true
  else
    fails "configure ${*:2}" "$1.log"
    return 1
  fi
}
# made FOLDER WHAT ARGUMENT...: make, and what it warned of. It goes on after an error: one run tells them all.
made() {
  local log=$1.${2//[ ,]/-}.log
  if make -C "$1" -k -j"$jobs" "${@:3}" >"$log" 2>&1; then
    grep -E 'warning:' "$log" | sort | uniq -c | head -n 20 || true
    lap "${1#/build-}: $2, $(grep -cE '^  (CC|CXX|DEVICE) ' "$log") sources, $(grep -cE '^  CXXLD ' "$log") linked"
  else
    fails "${1#/build-}: $2" "$log"
    return 1
  fi
}
begin=$SECONDS
./autogen.sh >/autogen.log 2>&1 || fails autogen.sh /autogen.log
if configured /build-host --with-gpu=host && made /build-host 'library, tools, examples'; then
  for example in hello_put 'halo 16 3' 'gups 100 200'; do
    # shellcheck disable=SC2086  # a command and its arguments
    timeout 100 /build-host/xiorun -n 2 /build-host/examples/$example || failures=$((failures + 1))
  done
  lap 'host: three examples run'
fi
if [ ${#known[@]} -gt 0 ] && configured /build-hip --with-gpu=hip "XIO_HIP_ARCH=${known[*]}"; then
  made /build-hip "library, tools, examples for ${known[*]}" || true
fi
# Programs of the tests, for the host: those of the AMD platform are the same sources, and want a GPU to run.
if [ -e /build-host/Makefile ] && made /build-host 'test programs' check TESTS=; then
  timeout 300 /build-host/tests/unit/unit --source=tests/unit/allocator.cpp >/dev/null || failures=$((failures + 1))
  lap 'host: a unit test run'
fi
echo "$suite: $failures failed"
exit $((failures != 0))
