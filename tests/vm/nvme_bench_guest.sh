# shellcheck shell=dash
# SPDX-License-Identifier: MIT
# What tests/vm/nvme_bench.sh runs in the guest; its plan sets builddir, rounds, seconds.
# shellcheck source=/dev/null
. /share/plan
: "${builddir:?}" "${rounds:?}" "${seconds:?}"
export XIO_BOOTSTRAP=local XIO_TIMEOUT_MS=60000
devices=/sys/bus/pci/devices

modprobe nvme && modprobe vfio-pci && modprobe vfio_iommu_type1 || exit 1
insmod /share/xio.ko || exit 1
# bind DRIVER BDF
bind() {
  tries=0
  until [ -e "$devices/$2/driver" ] || [ $tries = 50 ]; do sleep 0.2 && tries=$((tries + 1)); done
  echo "$1" >"$devices/$2/driver_override"
  echo "$2" >"$devices/$2/driver/unbind"
  echo "$2" >/sys/bus/pci/drivers_probe
  [ "$(basename "$(readlink "$devices/$2/driver")")" = "$1" ] || { echo "$2 is not bound to $1" && exit 1; }
}
for drive in 0000:00:10.0 0000:00:12.0; do bind vfio-pci $drive; done
# disk BDF, when its controller has been looked through.
disk() {
  tries=0
  while [ $tries -lt 50 ]; do
    for at in "$devices/$1"/nvme/nvme*/nvme*n*; do
      if [ -e "$at" ]; then echo "/dev/$(echo "${at##*/}" | sed 's/c[0-9]*n/n/')" && return; fi
    done
    sleep 0.2
    tries=$((tries + 1))
  done
}

# ours WHAT BDF OP DEPTH WAY LIMIT: one lane at depth 1; 64 in step at depth 64.
ours() {
  XIO_NVME_DOORBELL=$5 timeout 60 "$builddir/bench/nvme" rate "nvme:$2/1" "$3" "$4" 1 128 "$seconds" >/tmp/rate || exit 1
  awk -v what="$1" '$1 == "rate" {print "rate", what, "xio", $6}' /tmp/rate
  if [ -n "$6" ]; then awk -v what="$1-$5" -v limit="$6" '$1 == "rate" {print "doorbells", what, $7, limit}' /tmp/rate; fi
}
# pair WHAT BDF OP DEPTH LIMIT: by vfio, and at once by the kernel module, which has no shadow doorbells.
pair() {
  ours "$1" "$2" "$3" "$4" bar "$5"
  bind xio "$2"
  XIO_NVME_DOORBELL=bar timeout 60 "$builddir/bench/nvme" rate "kmod:$2/1" "$3" "$4" 1 128 "$seconds" >/tmp/rate || exit 1
  awk -v what="$1" '$1 == "rate" {print "rate", what, "kmod", $6}' /tmp/rate
  if [ -n "$5" ]; then awk -v what="$1-kmod" -v limit="$5" '$1 == "rate" {print "doorbells", what, $7, limit}' /tmp/rate; fi
  bind vfio-pci "$2"
}
# theirs WHAT DISK OP DEPTH ENGINE
theirs() {
  timeout 60 fio --name=b --filename="$2" --rw="rand$3" --bs=4k --iodepth="$4" --ioengine="$5" --direct=1 \
    --runtime="$seconds" --time_based --output-format=terse --terse-version=3 >/tmp/fio || exit 1
  awk -F';' -v what="$1" -v who="fio-$5" -v op="$3" '{print "rate", what, who, op == "read" ? $8 : $49}' /tmp/fio
}

file=$(disk 0000:00:11.0) null=$(disk 0000:00:13.0)
if [ ! -b "$file" ] || [ ! -b "$null" ]; then echo "no disks of the kernel" && exit 1; fi
# The parts of an op, one at a time: steps WHAT BDF OP WAY
steps() {
  XIO_NVME_DOORBELL=$4 timeout 60 "$builddir/bench/nvme" steps "nvme:$2/1" "$3" 2000 >/tmp/steps || exit 1
  sed -n "s/^steps [a-z]*/steps $1-$4/p" /tmp/steps
}
while [ "$rounds" -gt 0 ]; do
  for op in read write; do
    ours "file-$op-1" 0000:00:10.0 $op 1 auto ''
    theirs "file-$op-1" "$file" $op 1 psync
    ours "file-$op-64" 0000:00:10.0 $op 64 bar 0.0625
    theirs "file-$op-64" "$file" $op 64 io_uring
    ours "null-$op-64" 0000:00:12.0 $op 64 shadow 0.1
    theirs "null-$op-64" "$null" $op 64 io_uring
    pair "file-$op-1-bar" 0000:00:10.0 $op 1 ''
    pair "file-$op-64-bar" 0000:00:10.0 $op 64 0.0625
    pair "null-$op-1-bar" 0000:00:12.0 $op 1 ''
    pair "null-$op-64-bar" 0000:00:12.0 $op 64 0.0625
  done
  rounds=$((rounds - 1))
done
for op in read write; do
  for way in bar shadow; do
    steps "file-$op" 0000:00:10.0 $op $way
    steps "null-$op" 0000:00:12.0 $op $way
  done
done
exit 0
