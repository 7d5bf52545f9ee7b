#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   tests/vm/memory.sh
#
# The tests of memory by kind on a stock kernel, with what machines for builds lack: /dev/udmabuf, two NUMA nodes, and a
# system call to ask for them. Debian's kernels have udmabuf built in. `make check-vm-memory`.
set -uo pipefail
# shellcheck source=/dev/null
. "${XIO_TEST_BUILDDIR:?}/tests/env.sh" || exit 1
: "${builddir:?}" "${gpu:?}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "$gpu" != host ]; then
  echo "tests/vm/memory.sh wants a build --with-gpu=host: the guest has no GPU" >&2
  exit 125
fi
share=$(mktemp -d /tmp/xio-vm.XXXXXX) || exit 125
trap 'rm -rf "$share"' EXIT
tests=(memory_kinds memory_where memory_dmabuf)
"$here/carry" "$share/root" "$builddir/tests/chosen" || exit 125
cat >"$share/memory_guest.sh" <<GUEST
[ -e /dev/udmabuf ] || { echo "the guest has no /dev/udmabuf"; exit 1; }
[ -e /sys/devices/system/node/node1 ] || { echo "the guest has one NUMA node"; exit 1; }
for test in ${tests[*]}; do $builddir/tests/chosen --source=tests/unit/\$test.cpp --gtest_brief=1 || exit 1; done
$builddir/tests/chosen --gtest_filter='*numa*' | grep -q '^2 NUMA nodes$'
GUEST
VM_TIMEOUT=${VM_TIMEOUT:-400} "$here/run" "$share" memory_guest.sh \
  -object memory-backend-ram,id=low,size=512M -object memory-backend-ram,id=high,size=512M \
  -numa node,cpus=0,memdev=low -numa node,cpus=1,memdev=high
