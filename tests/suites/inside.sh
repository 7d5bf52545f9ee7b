#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs inside a Debian of the suite, on the tree in /src: installs what quickstart names, builds library, tools, examples,
# benchmarks and tests for the host, then the AMD platform as far as the suite's hipcc goes, and device code by its newest
# clang for GPUs that hipcc does not know. Errors of any of it are errors.
set -euo pipefail
suite=${1:?}
cd /src
jobs=$(nproc)
failures=0
lap() { printf '%s: %-52s %5d s\n' "$suite" "$1" $((SECONDS - begin)) && begin=$SECONDS; }
begin=$SECONDS

# The packages that quickstart wants of Debian 12; a name that is gone here is told, and configure says what that costs.
wanted=$(awk '/^(host|hip)_packages=\(/ {on = 1} on {print} on && /\)/ {on = 0}' quickstart | sed 's/^[a-z_]*=(//; s/).*//' | tr '\n' ' ')
apt-get update -qq
clang=$(apt-cache pkgnames clang- | sed -n 's/^clang-\([0-9][0-9]*\)$/\1/p' | sort -n | tail -n 1)
packages=()
for package in $wanted "clang-$clang" "lld-$clang" ca-certificates libdrm-dev; do
  if [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then packages+=("$package"); else echo "$suite has no $package"; fi
done
apt-get install -y -qq --no-install-recommends "${packages[@]}" >/packages.log 2>&1 || {
  tail -n 20 /packages.log
  exit 1
}
lap "${#packages[@]} packages, clang $clang"

# build FOLDER OPTION...: all of make, and the programs of make check.
build() {
  local folder=$1
  shift
  rm -rf "$folder"
  mkdir -p "$folder"
  if (cd "$folder" && /src/configure "$@" && make -j"$jobs" && make -j"$jobs" check TESTS=) >"$folder.log" 2>&1; then
    if grep -E 'warning:' "$folder.log" | sort | uniq -c | head -n 20; then :; fi
    lap "built with $*"
  else
    grep -m 10 -E '(: error|: fatal error|\*\*\*|error:)' "$folder.log" || tail -n 20 "$folder.log"
    echo "$suite: the build with $* failed"
    failures=$((failures + 1))
    begin=$SECONDS
  fi
}
./autogen.sh >/autogen.log 2>&1
build /build-host --with-gpu=host
if [ -x /build-host/xiorun ]; then
  for example in hello_put 'halo 16 3' 'gups 100 200'; do
    # shellcheck disable=SC2086  # a command and its arguments
    timeout 100 /build-host/xiorun -n 2 /build-host/examples/$example || failures=$((failures + 1))
  done
  timeout 300 /build-host/tests/unit/allocator >/dev/null || failures=$((failures + 1))
  lap 'examples and a unit test'
fi

# ---- AMD ---------------------------------------------------------------------------------------------------------
# Each with the lanes of its waves: HIP's headers ask for a macro that clang stopped to define in version 20.
targets=(gfx942/64 gfx950/64 gfx1100/32 gfx1201/32)
source=tests/device/gates.hip
flags=(-x hip -std=c++20 -O2 -Wall -Wextra -Werror -Wno-unused-command-line-argument -DXIO_PLATFORM_HIP=1 -Iinclude
  --cuda-device-only -S -o /dev/null)
known=()
for entry in "${targets[@]}"; do
  target=${entry%/*}
  # Device code alone needs no device library but for what the headers of HIP declare.
  if command -v hipcc >/dev/null && hipcc "${flags[@]}" --offload-arch="$target" "$source" >"/$target.log" 2>&1; then
    known+=("$target")
    lap "$target: device code by hipcc"
  elif "clang++-$clang" "${flags[@]}" -nogpulib "-D__AMDGCN_WAVEFRONT_SIZE=${entry#*/}" --offload-arch="$target" "$source" \
    >"/$target.clang.log" 2>&1; then
    lap "$target: device code by clang $clang alone"
    echo "  for hipcc says: $(grep -m 1 error "/$target.log" | cut -c1-100)"
  else
    grep -m 5 error "/$target.clang.log" "/$target.log" || true
    echo "$suite: no compiler makes device code for $target"
    failures=$((failures + 1))
  fi
done
if [ ${#known[@]} -gt 0 ]; then build /build-hip --with-gpu=hip "XIO_HIP_ARCH=${known[*]}"; fi
echo "$suite: $failures failed"
exit $((failures != 0))
