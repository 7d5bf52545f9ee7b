#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kernels and a drive of the simulated module: stamped blocks are read, written and verified in the drive's file, with
# memory in one piece and in many; then what opening says where something is missing. make check-kmod.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
drive=${XIO_TEST_BUILDDIR:?}/tests/vm/nvme_drive name=kmod:0000:01:00.0/1
work=$(mktemp -d) || exit 125
trap 'rm -rf "$work"' EXIT
export XIO_BOOTSTRAP=local XIO_HEAP_SIZE=40M XIO_TIMEOUT_MS=60000 XIO_TEST_KMOD_DRIVE=$work/disk
failed=0
# must NAME COMMAND...
must() {
  if timeout 60 "${@:2}" >"$work/out" 2>&1; then
    echo "ok   $1"
  else
    echo "FAIL $1"
    tail -n 10 "$work/out" | sed 's/^/  /'
    failed=$((failed + 1))
  fi
}
# says TEXT VARIABLE=VALUE
says() {
  timeout 60 env "$2" "$here/run" "$drive" refused "$name" >"$work/out" 2>&1
  if grep -q "refused.*$1" "$work/out"; then
    echo "ok   $2"
  else
    echo "FAIL $2: nothing like '$1'"
    tail -n 5 "$work/out" | sed 's/^/  /'
    failed=$((failed + 1))
  fi
}
for piece in 0 4096 65536; do
  truncate -s 16M "$work/disk"
  must 'stamp' "$drive" stamp "$work/disk" 1
  must "move, pieces of $piece" env XIO_TEST_KMOD_PIECE=$piece "$here/run" "$drive" move $name 1 1 2 2
  must 'verify' "$drive" verify "$work/disk" 1 2
done
must 'closed with a full queue' "$here/run" "$drive" leave $name
must 'compare and zeroes' "$here/run" "$drive" zero $name
says 'No such file or directory; load the kernel module' XIO_TEST_KMOD_MODULE=absent
says 'Permission denied; load the kernel module xio and give this user the right' XIO_TEST_KMOD_MODULE=denied
says 'of version 2 of the kernel module xio, and this is for version 1' XIO_TEST_KMOD_MODULE=other
says 'CAP_SYS_RAWIO' XIO_TEST_KMOD_MODULE=unprivileged
says 'more pieces than a pin may have' XIO_TEST_KMOD_SEGMENTS=10
exit $((failed != 0))
