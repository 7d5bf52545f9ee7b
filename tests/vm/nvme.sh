#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   tests/vm/nvme.sh
#
# XIO on NVMe controllers that somebody else wrote: QEMU's, behind an emulated IOMMU, taken by vfio from a stock kernel's
# driver. One guest tries all of it, see nvme_guest.sh. `make check-vm-nvme`; with VM_KERNEL=iommufd on a kernel that has
# iommufd too (tests/vm/image), and XIO_VFIO_IOMMU=type1 or iommufd for one way only.
set -uo pipefail
# shellcheck source=/dev/null
. "${XIO_TEST_BUILDDIR:?}/tests/env.sh" || exit 1
: "${builddir:?}" "${gpu:?}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "$gpu" != host ]; then
  echo "tests/vm/nvme.sh wants a build --with-gpu=host: the guest has no GPU" >&2
  exit 125
fi
# The program's links into the build tree, and QEMU's unix paths, are short here.
work=$(mktemp -d /tmp/xio-vm.XXXXXX) || exit 125
operator=
# shellcheck disable=SC2317  # called by the trap
finish() {
  if [ -n "$operator" ]; then kill "$operator" 2>/dev/null; fi
  wait
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

mkdir "$work/share"
cp "$here/nvme_guest.sh" "$work/share/"
forced=${XIO_VFIO_IOMMU:-auto}
echo "builddir='$builddir' kernel='${VM_KERNEL-}' XIO_VFIO_IOMMU='$forced'" >"$work/share/plan"
"$here/carry" "$work/share/root" "$builddir/tests/vm/nvme_drive" || exit 125
mkfifo "$work/qmp.in" "$work/qmp.out"

# Unplugs a drive by QMP when the guest asks for it: once the file share/unplug names it.
operate() {
  exec 8<>"$work/qmp.in" 9<>"$work/qmp.out"
  rm -f "$work/share/unplug"
  while [ ! -s "$work/share/unplug" ]; do sleep 0.2; done
  echo '{"execute": "qmp_capabilities"}' >&8
  echo "{\"execute\": \"device_del\", \"arguments\": {\"id\": \"$(<"$work/share/unplug")\"}}" >&8
  # Its replies are printed, so that a failure can be understood.
  while read -r -t 60 line <&9; do echo "qmp: ${line%$'\r'}"; done
}

# The blocks 1000 and 2000 of the drive `faulty` are bad: the first cannot be read, the second not be written.
faulty="driver=raw,node-name=faulty,file.driver=blkdebug,file.image.driver=file,file.image.filename=$work/faulty.img"
faulty+=',file.inject-error.0.event=read_aio,file.inject-error.0.errno=5,file.inject-error.0.sector=1000'
faulty+=',file.inject-error.1.event=write_aio,file.inject-error.1.errno=5,file.inject-error.1.sector=2000'

guest() {
  local disk
  for disk in small large faulty plugged shared labelled; do
    rm -f "$work/$disk.img" && truncate -s 4M "$work/$disk.img" || return 125
  done
  head -c 1M /dev/zero | tr '\0' s >"$work/sealed.img" || return 125
  rm -f "$work/bare.img" && truncate -s 1M "$work/bare.img" || return 125
  rm -f "$work/window" && truncate -s 16M "$work/window" || return 125
  VM_IOMMU=1 VM_MEM=1536 VM_TIMEOUT=400 "$here/run" "$work/share" nvme_guest.sh \
    -chardev "pipe,id=qmp,path=$work/qmp" -mon "chardev=qmp,mode=control" \
    -drive "file=$work/small.img,if=none,id=small,format=raw" \
    -device "nvme,id=c0,serial=small,addr=10.0,mdts=1,max_ioqpairs=1,drive=small" \
    -drive "file=$work/labelled.img,if=none,id=labelled,format=raw" \
    -device "nvme-ns,drive=labelled,bus=c0,nsid=2,ms=8" \
    -drive "file=$work/large.img,if=none,id=large,format=raw" \
    -device "nvme,id=c1,serial=large,addr=11.0,mdts=7,max_ioqpairs=64" \
    -device "nvme-ns,drive=large,bus=c1,nsid=3,logical_block_size=4096,physical_block_size=4096" \
    -drive "file=$work/sealed.img,if=none,id=sealed,format=raw,readonly=on" \
    -device "nvme-ns,drive=sealed,bus=c1,nsid=4,logical_block_size=4096,physical_block_size=4096" \
    -blockdev "$faulty" -device "nvme,id=c2,serial=faulty,addr=12.0,mdts=0,drive=faulty" \
    -drive "file=$work/shared.img,if=none,id=shared,format=raw" \
    -device "nvme,id=c4,serial=shared,addr=13.0,multifunction=on,drive=shared" \
    -device "virtio-rng-pci,addr=13.1" \
    -device "pcie-root-port,id=rootport,chassis=1,slot=1,addr=1c.0" \
    -drive "file=$work/plugged.img,if=none,id=plugged,format=raw" \
    -device "nvme,id=c3,serial=plugged,bus=rootport,drive=plugged" \
    -object "memory-backend-file,id=window,share=on,mem-path=$work/window,size=16M" \
    -device "ivshmem-plain,memdev=window,addr=0a.0" \
    -device "pxb-pcie,id=pxb,bus_nr=0x40,bus=pcie.0,addr=14.0,bypass_iommu=on" \
    -drive "file=$work/bare.img,if=none,id=bare,format=raw" \
    -device "pcie-root-port,id=bareport,bus=pxb,chassis=2,slot=2" \
    -device "nvme,serial=bare,bus=bareport,drive=bare"
}

# Whether QEMU itself died of a signal, which the shell says: its translator does that now and then where vfio is at work.
crashed() { [ "$1" != 0 ] && grep -qaE '/run: line [0-9]+: .*(Segmentation fault|Aborted|Bus error|Illegal inst)' "$work/log"; }

# Whether a processor of the guest got no more interrupts of its timer, which its kernel says before it hangs: QEMU's doing
# too, seen once.
stalled() { [ "$1" = 124 ] && grep -qa 'Possible timer handling issue' "$work/log"; }

begin=$SECONDS
for attempt in 1 2 3; do
  operate >"$work/qmp.log" 2>&1 &
  operator=$!
  status=0
  guest >"$work/log" 2>&1 || status=$?
  kill $operator 2>/dev/null
  wait $operator 2>/dev/null
  operator=
  if [ $attempt = 3 ] || ! { crashed $status || stalled $status; }; then break; fi
  echo "QEMU crashed or left a processor without its timer (attempt $attempt of 3); its last words:"
  tail -n 5 "$work/log" | tr -d '\r' | sed 's/^/  | /'
done
if [ "$status" = 0 ]; then
  grep -aE '^(ok|vm:|  )' "$work/log" | tr -d '\r'
  # The drives' queues lay in the window: it is not empty. iommufd pins no memory of devices, and says so.
  if ! grep -aq '^ok .*refused by iommufd' "$work/log" && cmp -s -n 8388608 "$work/window" /dev/zero; then
    echo 'FAIL no queue lay in the window of the other device'
    status=1
  fi
else
  tr -d '\r' <"$work/log" | sed 's/^/  | /'
  sed 's/^/  | /' "$work/qmp.log"
  echo "FAIL the guest ended with status $status (124: hung, 125: not set up, 126: died)"
fi
echo "nvme: $((SECONDS - begin)) s"
exit "$status"
