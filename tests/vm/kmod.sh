#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   tests/vm/kmod.sh [translated] [physical]
#
# The kernel module: built for Debian 12's kernels without a warning, loaded into a guest, driven by tests/vm/kmod (udmabuf gives the
# dma-bufs, QEMU's NVMe controller the queues), fuzzed, unloaded. Twice: behind an IOMMU and without. `make check-vm-kmod`.
#   SECONDS_OF_FUZZ=5   SEED=1   KERNELS='6.1 6.12'
set -uo pipefail
# shellcheck source=/dev/null
. "${XIO_TEST_BUILDDIR:?}/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d /tmp/xio-vm.XXXXXX) || exit 125
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/vm/packages.sh
. "$here/packages.sh"
need mke2fs=e2fsprogs
# What a make above this script shares jobs by would be a warning of the module's own make.
unset MAKEFLAGS MAKELEVEL MFLAGS
kmod=$builddir/tests/vm/kmod drive=$builddir/tests/vm/nvme_drive tester=$builddir/xio-tester

# build SERIES: in a copy, as the source may be read-only.
build() {
  local headers begin=$SECONDS
  headers=$("$here/headers" "$1") || exit 125
  mkdir -p "$work/$1"
  cp "$srcdir"/kernel/xio/{*.c,*.h,Kbuild,Makefile} "$work/$1/"
  if ! make -s -C "$work/$1" KDIR="$headers" W=1 >"$work/$1.log" 2>&1; then
    cat "$work/$1.log"
    echo "FAIL the module does not compile for $1"
    return 1
  fi
  if grep -i 'warning' "$work/$1.log"; then
    echo "FAIL the module compiles for $1 with warnings"
    return 1
  fi
  echo "ok   built for ${headers##*/linux-headers-} ($((SECONDS - begin)) s)"
}

# The exporter of a BAR, for the guest's kernel.
build_exporter() {
  local headers
  headers=$("$here/headers" 6.12) || exit 125
  mkdir -p "$work/bar_export"
  cp "$here"/bar_export/{bar_export.c,Kbuild} "$work/bar_export/"
  if ! make -s -C "$headers" M="$work/bar_export" W=1 modules >"$work/bar_export.log" 2>&1; then
    cat "$work/bar_export.log"
    echo "FAIL the exporter of a BAR does not compile"
    return 1
  fi
}

# guest NAME IOMMU
guest() {
  local status=0 share=$work/$1 tries=0
  mkdir -p "$share"
  cp "$here/kmod_guest.sh" "$share/"
  strip --strip-debug -o "$share/xio.ko" "$work/6.12/xio.ko"
  strip --strip-debug -o "$share/bar_export.ko" "$work/bar_export/bar_export.ko"
  "$here/carry" "$share/root" "$kmod" "$kmod"_open "$drive" "$tester" || exit 125
  cat >"$share/plan" <<PLAN
kmod='$kmod'
kmod_drive='$drive'
kmod_tester='$tester'
translated=$2
seconds=${SECONDS_OF_FUZZ:-5}
seed=${SEED:-1}
PLAN
  while :; do
    truncate -s 0 "$work/drive" && truncate -s 16M "$work/drive"
    truncate -s 0 "$work/window" && truncate -s 32M "$work/window"
    truncate -s 0 "$work/shared" && truncate -s 16M "$work/shared" && mke2fs -q -t ext4 "$work/shared" || exit 125
    status=0
    VM_IOMMU=$2 VM_TIMEOUT=480 VM_MODULES='ext4 crc32c_generic' "$here/run" "$share" kmod_guest.sh -device pcie-root-port,id=rp0,slot=1 \
      -drive "file=$work/drive,if=none,id=d0,format=raw,cache=writeback,aio=threads" \
      -device nvme,drive=d0,serial=xiokmod,bus=rp0,max_ioqpairs=4 \
      -object "memory-backend-file,id=window,share=on,mem-path=$work/window,size=32M" \
      -device ivshmem-plain,memdev=window,addr=0a.0 \
      -device nvme-subsys,id=pair -device nvme,id=first,serial=shared,subsys=pair,addr=0b.0 \
      -device nvme,serial=shared,subsys=pair,addr=0c.0 \
      -drive "file=$work/shared,if=none,id=d1,format=raw" -device nvme-ns,drive=d1,nsid=1,shared=on,bus=first >"$work/$1.log" 2>&1 || status=$?
    # A QEMU that dies by SIGSEGV (128 + 11, of which tests/vm/run makes 68) is QEMU's own fault; what the guest says is not.
    if [ $status != 68 ] || grep -q 'kmod_guest.sh ended' "$work/$1.log" || [ $((tries += 1)) -gt 2 ]; then break; fi
    echo "QEMU died by a signal in the guest $1; once more ($tries of 2)"
  done
  tr -d '\r' <"$work/$1.log" | grep -aE '^(ok|FAIL|skip|fuzz|vm:|  |[0-9]+ failures)' | sed "s/^/  $1: /"
  if [ $status = 0 ]; then return 0; fi
  if ! grep -q 'kmod_guest.sh ended' "$work/$1.log"; then tail -n 40 "$work/$1.log" | tr -d '\r' | sed "s/^/  $1| /"; fi
  echo "FAIL $1: its guest ended with status $status (124: hung, 125: not set up, 126: died)"
  return 1
}

if [ ! -x "$kmod" ] || [ ! -x "$kmod"_open ] || [ ! -x "$drive" ] || [ ! -x "$tester" ]; then
  echo "no $kmod; make check-vm-kmod builds it" >&2
  exit 125
fi
# shellcheck disable=SC2046  # words
if [ $# = 0 ]; then set -- $("$srcdir/tests/leave_out" check-vm-kmod translated physical); fi
bad=0
for series in ${KERNELS-6.1 6.12}; do build "$series" || bad=1; done
build_exporter || bad=1
if [ $bad = 0 ]; then
  for part in "$@"; do
    case $part in
      translated) guest translated 1 || bad=1 ;;
      physical) guest physical 0 || bad=1 ;;
      *)
        echo "tests/vm/kmod.sh knows translated and physical, not $part" >&2
        exit 2
        ;;
    esac
  done
fi
echo "kmod: $SECONDS s"
exit $bad
