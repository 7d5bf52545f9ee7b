#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Kernels and a drive of the simulated module: stamped blocks are read, written and verified in the drive's file, with
# memory in one piece and in many; then what opening says where something is missing. make check-kmod.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
drive=${XIO_TEST_BUILDDIR:?}/tests/vm/nvme_drive name=kmod:0000:01:00.0/1
# shellcheck source=tests/kmod/steps.sh
. "$here/steps.sh"
export XIO_BOOTSTRAP=local XIO_HEAP_SIZE=40M XIO_TIMEOUT_MS=60000 XIO_TEST_KMOD_DRIVE=$work/disk
for piece in 0 4096 65536; do
  truncate -s 16M "$work/disk"
  must 'stamp' "$drive" stamp "$work/disk" 1
  must "move, pieces of $piece" env XIO_TEST_KMOD_PIECE=$piece "$here/run" "$drive" move $name 1 1 2 2
  must 'verify' "$drive" verify "$work/disk" 1 2
done
# Doorbells that lie apart, short and long commands.
for shape in 'DSTRD=4 MDTS=8192' 'DSTRD=8 MDTS=0'; do
  truncate -s 16M "$work/disk"
  must 'stamp' "$drive" stamp "$work/disk" 1
  must "move, $shape" env "XIO_TEST_KMOD_${shape% *}" "XIO_TEST_KMOD_${shape#* }" "$here/run" "$drive" move $name 1 1 2 2
  must 'verify' "$drive" verify "$work/disk" 1 2
done
# Memory beyond the largest udmabuf, 64 MiB, with data across that border.
for piece in 0 65536; do
  truncate -s 96M "$work/disk"
  must 'stamp' "$drive" stamp "$work/disk" 1
  must "a heap of 120 MiB, pieces of $piece" env XIO_HEAP_SIZE=120M XIO_TEST_KMOD_PIECE=$piece "$here/run" "$drive" move $name 1 1 2 2
  must 'verify' "$drive" verify "$work/disk" 1 2
done
truncate -s 16M "$work/disk"
# Two drives, for which the same memory lies at different addresses: at once, stripes over them, one opened twice.
second=kmod:0000:02:00.0/1
truncate -s 16M "$work/disk2"
export XIO_TEST_KMOD_DRIVE_2=$work/disk2
for piece in 0 4096; do
  export XIO_TEST_KMOD_PIECE=$piece
  must 'stamp' "$drive" stamp "$work/disk" 1
  must "two drives at once, pieces of $piece" "$here/run" "$drive" copy $name $second
  must 'what was copied' cmp -n 4194304 "$work/disk" "$work/disk2"
  must "one drive opened twice, pieces of $piece" "$here/run" "$drive" copy $name $name
  must "stripes over two drives, pieces of $piece" "$here/run" "$drive" zero $name,$second
  must "stripes in random blocks, pieces of $piece" "$here/run" "$XIO_TEST_BUILDDIR/xio-tester" nvme-ep --controller $name,$second --i-know \
    --write-io 200 --read-io 200 --queue-length 64 --batch-size 8 --lbas-per-io 5 --access-pattern random --verify
done
unset XIO_TEST_KMOD_PIECE
must 'closed with a full queue' "$here/run" "$drive" leave $name
must 'compare and zeroes' "$here/run" "$drive" zero $name
says 'it was unbound or is gone from the bus' 'a drive that goes away in mid-read' env XIO_TEST_KMOD_LOST_AFTER=8 "$here/run" "$drive" endless $name
# xio-tester with every memory mode; bit 4, doorbells in memory of the GPU, is what no register can be.
tester=$XIO_TEST_BUILDDIR/xio-tester
for mode in {0..15}; do
  must "xio-tester, memory mode $mode" "$here/run" "$tester" nvme-ep --controller $name --memory-mode "$mode" --i-know \
    --write-io 200 --read-io 200 --queue-length 64 --num-queues 2 --batch-size 8 --lbas-per-io 5 --access-pattern random --verify
done
# What xio-perf reads is compared with the drive, and the next read finds what it wrote.
perf=("$here/run" "$XIO_TEST_BUILDDIR/xio-perf" --storage "$name" -b 4k -e 16k -c 1 -n 4 -w 1)
must 'xio-perf nvme_read' "${perf[@]}" nvme_read -t 16
must 'xio-perf nvme_write' "${perf[@]}" nvme_write -t 16 --i-know
must 'xio-perf nvme_read of what was written, by wave and block' "${perf[@]}" nvme_read -s wave,block -t 64
refused=("$here/run" "$drive" refused "$name")
refuses 'No such file or directory; load the kernel module' XIO_TEST_KMOD_MODULE=absent "${refused[@]}"
refuses 'Permission denied; load the kernel module xio and give this user the right' XIO_TEST_KMOD_MODULE=denied "${refused[@]}"
refuses 'of version 2 of the kernel module xio, and this is for version 1' XIO_TEST_KMOD_MODULE=other "${refused[@]}"
refuses 'is bound to the driver nvme and not to xio, so bind it' XIO_TEST_KMOD_DRIVER=nvme "${refused[@]}"
refuses 'is bound to the driver vfio-pci and not to xio, so bind it' XIO_TEST_KMOD_DRIVER=vfio-pci "${refused[@]}"
refuses 'is bound to no driver and not to xio, so bind it' XIO_TEST_KMOD_DRIVER= "${refused[@]}"
refuses 'CAP_SYS_RAWIO' XIO_TEST_KMOD_MODULE=unprivileged "${refused[@]}"
refuses 'more pieces than a pin may have' XIO_TEST_KMOD_SEGMENTS=10 "${refused[@]}"
before=$(sha256sum <"$work/disk")
refuses 'does not reach the memory that kernels see.*XIO_HEAP_KIND=host' XIO_TEST_KMOD_PINS=elsewhere "${refused[@]}"
refuses 'does not reach the memory that kernels see' XIO_NVME_DOORBELL=host env XIO_TEST_KMOD_PINS=elsewhere "${refused[@]}"
must 'the drive is as it was' test "$before" = "$(sha256sum <"$work/disk")"
exit $((failed != 0))
