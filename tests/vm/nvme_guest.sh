# shellcheck shell=dash
# SPDX-License-Identifier: MIT
# What tests/vm/nvme.sh runs in the guest. Data carries its place on the drive: written by the kernel's driver and read by
# XIO, written by XIO and read by the kernel's driver. /share/plan sets builddir, kernel and XIO_VFIO_IOMMU.
# shellcheck source=/dev/null
. /share/plan
: "${builddir:?}" "${kernel?}"
program=$builddir/tests/vm/nvme_drive
devices=/sys/bus/pci/devices
small=0000:00:10.0 large=0000:00:11.0 faulty=0000:00:12.0 shared=0000:00:13.0 other=0000:00:13.1 window=0000:00:0a.0
export XIO_BOOTSTRAP=local XIO_HEAP_SIZE=12M XIO_TIMEOUT_MS=60000 XIO_LOG_LEVEL=info XIO_VFIO_IOMMU
failures=0

fail() {
  echo "FAIL $*"
  failures=$((failures + 1))
}
clock() { awk '{print $1}' /proc/uptime; }
since() { awk -v from="$1" '{printf "%.1f s", $1 - from}' /proc/uptime; }

# until_there SECONDS TEST...: whether the test holds before the time is over.
until_there() {
  limit=$(($1 * 5))
  shift
  while [ $limit -gt 0 ]; do
    if "$@"; then return 0; fi
    sleep 0.2
    limit=$((limit - 1))
  done
  return 1
}

# run NAME ARGUMENT...: the program, in time; what it said is in /tmp/said.
run() {
  name=$1 begin=$(clock) status=0
  shift
  timeout 150 "$program" "$@" >/tmp/said 2>&1 || status=$?
  if [ $status = 0 ]; then
    echo "ok   $name ($(since "$begin"))"
  else
    fail "$name: status $status"
    sed 's/^/  /' /tmp/said
  fi
}

# said PATTERN WHAT: the last program's words, on one line.
said() { if ! grep -q "$1" /tmp/said; then fail "nothing like \"$1\": $2"; sed 's/^/  /' /tmp/said; fi; }

# ---- drives and drivers -------------------------------------------------------------------------------------------
# disk BDF: the one of its first namespace that is tried. The kernel numbers disks as it finds them, in any order.
disk() {
  case $1 in "$large") nsid=3 ;; *) nsid=1 ;; esac
  for at in "$devices/$1"/nvme/nvme*/nvme*n*; do
    name=$(echo "${at##*/}" | sed 's/c[0-9]*n/n/')
    if [ "$(cat "/sys/block/$name/nsid" 2>/dev/null)" = $nsid ]; then echo "$name"; fi
  done
}
has_disk() { [ -n "$(disk "$1")" ] && [ -b "/dev/$(disk "$1")" ] && [ "$(cat "/sys/block/$(disk "$1")/size")" != 0 ]; }
driver() { basename "$(readlink "$devices/$1/driver")" 2>/dev/null; }
bind() {
  echo "$2" >"$devices/$1/driver_override"
  if [ -e "$devices/$1/driver" ]; then echo "$1" >"$devices/$1/driver/unbind"; fi
  echo "$1" >/sys/bus/pci/drivers_probe
  until_there 20 driver_is "$1" "$2" || fail "$1 has the driver $(driver "$1") and not $2"
}
driver_is() { [ "$(driver "$1")" = "$2" ]; }

# On a bus that the IOMMU leaves out, where interrupts get lost: the kernel's driver would wait for them.
bare=$(cd "$devices/0000:40:00.0" && echo 0000:*:00.0)
echo vfio-pci >"$devices/$bare/driver_override"
modprobe nvme
plugged=$(cd "$devices/0000:00:1c.0" && echo 0000:*:00.0)
for drive in $small $large $faulty $shared "$plugged"; do
  until_there 30 has_disk "$drive" || { fail "no disk of $drive"; dmesg | grep nvme | tail; exit 1; }
done

# ---- refusals, while the kernel has the drives --------------------------------------------------------------------
swap=/dev/$(disk "$large")
if ! mkswap "$swap" >/dev/null || ! swapon "$swap"; then fail "no swap on $swap"; fi
run 'refused while the kernel has them' refused nvme:$small/1 nvme:$large/3 nvme:ffff:00:00.0/1 nvme:$other/1 nvme:x
said "refused nvme:$small/1.*bound to the driver nvme.*driverctl" 'bound to another driver'
said "refused nvme:$large/3.*is swapped on; free it" 'swapped on'
said 'refused nvme:ffff.*no PCI function' 'no such function'
said "refused nvme:$other/1.*is no NVMe controller" 'no drive'
said 'refused nvme:x .*write it as nvme:BDF/NSID' 'no name'
swapoff "$swap"

# ---- the kernel writes --------------------------------------------------------------------------------------------
for drive in $small $large; do run "the kernel writes $drive" stamp "/dev/$(disk "$drive")" 1; done

# ---- XIO reads and writes -----------------------------------------------------------------------------------------
modprobe vfio-pci
if [ "$kernel" != iommufd-compat ]; then modprobe vfio_iommu_type1; fi
for drive in $small $large $faulty $shared "$plugged"; do bind "$drive" vfio-pci; done

# How addresses are to be had: the stock kernel has no iommufd.
way='type 1' pins_devices=yes
case $kernel in
  iommufd*) if [ "$XIO_VFIO_IOMMU" != type1 ]; then way=iommufd; fi ;;
  *) if [ -e /dev/iommu ]; then fail 'the stock kernel has iommufd by now'; fi ;;
esac
if [ "$XIO_VFIO_IOMMU" = iommufd ] || [ "$kernel" = iommufd-compat ]; then pins_devices=no; fi

# vfio-pci does not take what it cannot guard.
echo "$bare" >/sys/bus/pci/drivers_probe
if [ -e "$devices/$bare/driver" ]; then fail "$bare has the driver $(driver "$bare")"; fi
truncate -s 1M /tmp/file
run 'refused by vfio and by drives' refused nvme:$small/9 nvme:$small/2 nvme:$shared/1 "nvme:$bare/1" \
  file:/tmp/file,nvme:$small/1
said "refused nvme:$bare/1.*$bare is behind no IOMMU.*intel_iommu=on" 'no IOMMU'
said 'refused file:/tmp/file,nvme.*different kinds.*open each by itself' 'stripes over a file and a drive'
said "refused nvme:$small/9.*no active namespace 9" 'no such namespace'
said "refused nvme:$small/2.*8 bytes of metadata" 'metadata'
said "refused nvme:$shared/1.*not viable.*$other (virtio-pci)" 'a group with others in it'
run 'refused attributes' asked nvme:$large/3
said 'depth-odd.*power of two' 'odd depth'
said 'depth-mqes.*CAP.MQES' 'depth above MQES'
said 'small:.*has 4194304 bytes' 'too small'
said 'block:.*blocks have 4096 bytes' 'another block'

echo 'nobody:x:65534:65534::/:/bin/sh' >>/etc/passwd
su -s /bin/sh nobody -c "$program refused nvme:$small/1" >/tmp/said 2>&1 || fail 'nobody opened a drive'
said 'no permission for /dev/\(vfio/\|iommu\)' 'no permission'

# An ordinary user whose files they are, with and without leave to lock memory.
files="/dev/vfio/$(basename "$(readlink "$devices/$small/iommu_group")") /dev/iommu"
for file in $files /dev/vfio/devices/"$(ls "$devices/$small/vfio-dev")"; do
  if [ -e "$file" ]; then chown nobody "$file"; fi
done
su -s /bin/sh nobody -c "ulimit -l 4096; $program refused nvme:$small/1" >/tmp/said 2>&1 || fail 'a heap beyond the limit'
said 'raise the limit of locked memory' 'memory that may not be locked'
begin=$(clock)
if su -s /bin/sh nobody -c "$program move nvme:$small/1 1 1 1 1" >/tmp/said 2>&1; then
  echo "ok   an ordinary user ($(since "$begin"))"
else
  fail 'an ordinary user'
fi
said "nvme:$small/1: addresses by $way" 'the way to the IOMMU'

# 8 KiB a command, one queue where four are asked for.
XIO_NVME_DOORBELL=bar run 'mdts 1, blocks of 512, 1 queue, doorbells in the BAR' move nvme:$small/1 1 1 2 4
said 'has 1 I/O queues and not the 4' 'fewer queues than asked'
XIO_NVME_DOORBELL=shadow run 'mdts 1, blocks of 512, shadow doorbells' move nvme:$small 1 2 3 1
sed -n 's/^moved/  moved/p' /tmp/said
XIO_NVME_DOORBELL=shadow run 'mdts 7, blocks of 4096, 4 queues, shadow doorbells' move nvme:$large/3 1 1 2 4
sed -n 's/^moved/  moved/p' /tmp/said
XIO_NVME_DOORBELL=host run 'mdts 7, blocks of 4096, doorbells by the host' move nvme:$large/3 1 2 3 2
# Rings that wrap at once, in the memory of another device, and the data too.
if [ $pins_devices = yes ]; then
  XIO_NVME_DOORBELL=bar XIO_NVME_QUEUE_BAR=$window/2 XIO_TEST_WINDOW=$devices/$window/resource2 \
    run 'queues, lists and data in the memory of another device' move nvme:$large/3 1 3 4 2
else
  XIO_NVME_QUEUE_BAR=$window/2 run 'queues in the memory of another device, refused by iommufd' refused nvme:$large/3
  said "refused nvme:$large/3.*cannot be pinned for a drive" 'memory of a device'
  XIO_NVME_DOORBELL=bar run 'rings that wrap at once' move nvme:$large/3 1 3 4 2
fi

run 'two drives at the same time' copy nvme:$small/1 nvme:$large/3
truncate -s 4M /tmp/file
run 'a drive and a file at the same time' copy nvme:$small/1 file:/tmp/file
run 'a file and a drive at the same time' copy file:/tmp/file nvme:$large/3
run 'a drive closed with its queue full' leave nvme:$large/3
run 'a medium that cannot be written' sealed nvme:$large/4
sed -n 's/^sealed/  sealed/p' /tmp/said
run 'compare and write zeroes' zero nvme:$large/3
run 'the same on one that takes any length at once' zero nvme:$faulty/1
run 'the same on stripes over two drives' zero "nvme:$small/1,nvme:$plugged/1"

# ---- errors of the medium -----------------------------------------------------------------------------------------
run 'errors reach who asked' faults nvme:$faulty/1 1000 2000
sed -n 's/^fault/  fault/p' /tmp/said

# ---- drives that go away ------------------------------------------------------------------------------------------
# strike NAME BDF/NSID COMMAND: while it is read from.
strike() {
  begin=$(clock)
  timeout 240 "$program" endless "nvme:$2" >/tmp/said 2>&1 &
  pid=$!
  until_there 60 grep -q '^moving' /tmp/said || fail "$1: nothing moves"
  sleep 1
  $3
  status=0
  wait $pid || status=$?
  if [ $status = 0 ]; then
    echo "ok   $1 ($(since "$begin"))"
    sed -n 's/^lost/  lost/p' /tmp/said
  else
    fail "$1: status $status"
    sed 's/^/  /' /tmp/said
  fi
}
reset_it() { echo 1 >"$devices/$large/reset" || fail 'no way to reset'; }
unplug() { echo c3 >/share/unplug; }
gone() { [ ! -e "$devices/$plugged" ]; }

strike 'a drive that is reset' $large/3 reset_it
run 'the same drive afterwards' move nvme:$large/3 1 4 5 1
strike 'a drive that is unplugged' "$plugged/1" unplug
until_there 60 gone || fail "$plugged is still there"
run 'the same drive afterwards' refused "nvme:$plugged/1"
said "no PCI function $plugged" 'a drive that is gone'

# ---- the kernel reads ---------------------------------------------------------------------------------------------
for drive in $small $large; do
  bind "$drive" nvme
  until_there 30 has_disk "$drive" || fail "no disk of $drive"
done
run 'the kernel reads what XIO wrote, mdts 1' verify "/dev/$(disk "$small")" 1 3
run 'the kernel reads what XIO wrote, mdts 7' verify "/dev/$(disk "$large")" 1 5
if dmesg | grep -E 'DMAR.*fault|WARNING|BUG|Oops'; then fail 'the kernel complained'; fi
echo "$failures failures"
[ $failures = 0 ]
