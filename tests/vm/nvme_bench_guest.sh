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

# perf NAME OP DEPTH COUNT: /tmp/rate gets IOPS and doorbells of a command. One lane at depth 1; 64 in step at depth 64.
perf() {
  may=''
  [ "$2" = read ] || may=--i-know
  XIO_NVME_DEPTH=128 timeout 60 "$builddir/xio-perf" "nvme_$2" --storage "$1" $may -b 4k -e 4k -c 1 -t "$3" -n "$4" --format csv >/tmp/csv ||
    exit 1
  awk -F, 'NR == 1 {for (i = 1; i <= NF; ++i) at[$i] = i; next} {printf "%d %s\n", $at["Mmsg_per_s"] * 1e6, $at["doorbells_per_op"]}' \
    /tmp/csv >/tmp/rate
}
# xio WHO WHAT NAME OP DEPTH WAY LIMIT LABEL: as often as takes $seconds, by the rate of a few.
xio() {
  export XIO_NVME_DOORBELL="$6"
  perf "$3" "$4" "$5" $((2000 / $5 + 10))
  perf "$3" "$4" "$5" $(($(cut -d ' ' -f 1 /tmp/rate) * seconds / $5 + 1))
  awk -v who="$1" -v what="$2" '{print "rate", what, who, $1}' /tmp/rate
  if [ -n "$7" ]; then awk -v what="$2-$8" -v limit="$7" '{print "doorbells", what, $2, limit}' /tmp/rate; fi
}
# ours WHAT BDF OP DEPTH WAY LIMIT
ours() { xio xio "$1" "nvme:$2/1" "$3" "$4" "$5" "$6" "$5"; }
# pair WHAT BDF OP DEPTH LIMIT: by vfio, and at once by the kernel module, which has no shadow doorbells.
pair() {
  ours "$1" "$2" "$3" "$4" bar "$5"
  bind xio "$2"
  xio kmod "$1" "kmod:$2/1" "$3" "$4" bar "$5" kmod
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
while [ "$rounds" -gt 0 ]; do
  for op in read write; do
    ours "file-$op-1" 0000:00:10.0 $op 1 auto ''
    theirs "file-$op-1" "$file" $op 1 psync
    ours "file-$op-64" 0000:00:10.0 $op 64 bar 0.0625
    theirs "file-$op-64" "$file" $op 64 io_uring
    pair "file-$op-1-bar" 0000:00:10.0 $op 1 ''
    pair "file-$op-64-bar" 0000:00:10.0 $op 64 0.0625
  done
  # Reads alone: xio-perf looks for what it has written, and this one keeps nothing.
  ours null-read-64 0000:00:12.0 read 64 shadow 0.1
  theirs null-read-64 "$null" read 64 io_uring
  pair null-read-1-bar 0000:00:12.0 read 1 ''
  pair null-read-64-bar 0000:00:12.0 read 64 0.0625
  rounds=$((rounds - 1))
done
exit 0
