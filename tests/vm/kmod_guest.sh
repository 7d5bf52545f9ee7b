# shellcheck shell=dash
# SPDX-License-Identifier: MIT
# What tests/vm/kmod.sh runs in a guest: the module is loaded, its calls driven by tests/vm/kmod, its drive checked against Linux' own nvme
# driver, and the module unloaded. /share/plan sets kmod (the program), translated (1: behind an IOMMU), seconds and seed of the fuzz.
# shellcheck source=/dev/null
. /share/plan
: "${kmod:?}" "${kmod_drive:?}" "${kmod_tester:?}" "${translated:?}" "${seconds:?}" "${seed:?}"
failures=0

fail() {
  echo "FAIL $*"
  failures=$((failures + 1))
}

# try NAME ARGUMENT... The host's limit is the one that counts: a guest's clock may run fast where its processors are short.
try() {
  local begin
  begin=$(cut -d' ' -f1 /proc/uptime)
  if timeout 1000 "$kmod" "$@" >/tmp/out 2>&1; then
    awk -v from="$begin" -v what="$*" '{printf "ok   %s (%.1f s)\n", what, $1 - from}' /proc/uptime
    grep '^fuzz: seed' /tmp/out
  else
    fail "$*: status $?"
    head -n 40 /tmp/out | sed 's/^/  /'
  fi
}

# Two controllers of one subsystem share a namespace. Nobody has them before their turn.
first=0000:00:0b.0 second=0000:00:0c.0
find_drive() {
  local device
  for device in /sys/bus/pci/devices/*; do
    if [ "$(cat "$device/class")" = 0x010802 ] && [ "${device##*/}" != $first ] && [ "${device##*/}" != $second ]; then
      echo "${device##*/}"
      return 0
    fi
  done
  return 1
}

# Which driver has the drive.
driver_of() { basename "$(readlink "/sys/bus/pci/devices/$drive/driver")"; }

# to DRIVER: '' is the kernel's own choice.
bind_to() {
  local device=/sys/bus/pci/devices/$drive
  if [ -e "$device/driver" ]; then echo "$drive" >"$device/driver/unbind"; fi
  echo "$1" >"$device/driver_override"
  echo "$drive" >/sys/bus/pci/drivers_probe
  [ "$(driver_of)" = "${1:-nvme}" ] || fail "the drive is bound to '$(driver_of)' and not to '${1:-nvme}'"
}

wait_for() {
  local tries=0
  while [ ! -e "$1" ] && [ $tries -lt 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  [ -e "$1" ]
}

# A leaked object would be counted in these slabs.
kept() { awk '$1 ~ /^kmalloc/ {sum += $2} END {print sum}' /proc/slabinfo; }
free_kb() { awk '$1 == "MemFree:" {print $2}' /proc/meminfo; }
dmabufs() { awk '/^Total.*objects/ {n = $2} END {print n}' /sys/kernel/debug/dma_buf/bufinfo; }

for one in $first $second; do echo none >"/sys/bus/pci/devices/$one/driver_override"; done
modprobe nvme
mount -t debugfs debugfs /sys/kernel/debug
drive=$(find_drive) || { fail 'no NVMe controller in this guest' && exit 1; }
wait_for /dev/nvme0n1 || fail 'the kernel finds no drive'
insmod /share/xio.ko || { fail 'the module does not load' && dmesg | tail -n 20 && exit 1; }
[ "$(stat -c %a /dev/xio)" = 660 ] || fail "/dev/xio has the mode $(stat -c %a /dev/xio)"

# ---- beside another driver
try calls "$drive" "$translated"
if "$kmod"_open kmod:/dev/nvme0n1 >/tmp/out 2>&1 && grep -q "driver lends none of its queues; bind $drive to xio and open kmod:$drive/1" /tmp/out; then
  echo "ok   kmod:/dev/nvme0n1 says what to do instead"
else
  fail "kmod:/dev/nvme0n1 says: $(cat /tmp/out)"
fi
chgrp 44 /dev/xio
chmod o+rw /dev/udmabuf
try unprivileged "$drive" "$translated"
if [ "$translated" = 1 ]; then try memlock "$drive"; fi
# Bit 6, as vfio sets it: a program may reach all memory.
tainted=$(($(cat /proc/sys/kernel/tainted) >> 6 & 1))
[ $tainted != "$translated" ] || fail "translated $translated, and the taint of programs is $tainted"
before=$(kept)
memory=$(free_kb)
try cycles "$drive"
# Caches of the kernel fill by some; 600 rounds with two pins each would leave more.
echo "ok   cycles: $(($(kept) - before)) kernel objects and $((memory - $(free_kb))) KiB more than before"
[ $(($(kept) - before)) -lt 900 ] || fail "cycles: the kernel keeps $(($(kept) - before)) objects more than before"
[ $((memory - $(free_kb))) -lt 262144 ] || fail "cycles: $((memory - $(free_kb))) KiB of memory less than before"

# ---- with a drive of its own
tr -dc 'a-zA-Z0-9' </dev/urandom | head -c 1048576 >/tmp/first
dd if=/tmp/first of=/dev/nvme0n1 bs=64k conv=fsync 2>/dev/null || fail 'the kernel cannot write to the drive'
bind_to xio
try queues "$drive" /tmp/first
try loss "$drive" kill
if [ -e "/sys/bus/pci/devices/$drive/reset" ]; then
  try loss "$drive" reset
  try queues "$drive" /tmp/first
else
  echo "skip reset: this QEMU's drive has none"
fi
try loss "$drive" unbind
bind_to xio
try loss "$drive" remove
[ ! -e "/sys/bus/pci/devices/$drive" ] || fail 'the drive was not removed'
echo 1 >/sys/bus/pci/rescan
bind_to xio
before=$(kept)
try gone "$drive"
bind_to ''
bind_to xio
try fuzz "$drive" "$seconds" "$seed"
[ $(($(kept) - before)) -lt 2500 ] || fail "fuzz: the kernel keeps $(($(kept) - before)) objects more than before"
try queues "$drive" /tmp/first
bind_to ''
if wait_for /dev/nvme0n1; then
  dd if=/dev/nvme0n1 bs=64k count=16 2>/dev/null | cmp - /tmp/first || fail 'what the kernel wrote has changed'
  dd if=/dev/nvme0n1 bs=64k skip=16 count=16 2>/dev/null | cmp - /tmp/first.second || fail 'the kernel does not read what xio wrote'
else
  fail 'the kernel does not take the drive back'
fi

# ---- XIO's own kernels, by the module
# xio ARGUMENT...: tests/vm/nvme_drive; what it said is in /tmp/out.
export XIO_BOOTSTRAP=local XIO_HEAP_SIZE=24M XIO_TIMEOUT_MS=60000 XIO_LOG_LEVEL=info
xio() {
  local begin
  begin=$(cut -d' ' -f1 /proc/uptime)
  if timeout 300 "$kmod_drive" "$@" >/tmp/out 2>&1; then
    awk -v from="$begin" -v what="$*" '{printf "ok   drive %s (%.1f s)\n", what, $1 - from}' /proc/uptime
  else
    fail "drive $*: status $?"
    tail -n 20 /tmp/out | sed 's/^/  /'
  fi
}
said() { if ! grep -q "$1" /tmp/out; then fail "nothing like \"$1\"" && sed 's/^/  /' /tmp/out; fi; }
wait_for_word() {
  local tries=0
  until grep -q "$1" "$2" || [ $tries -gt 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
  grep -q "$1" "$2" || fail "no word of $1 in time: $(cat "$2")"
}
disk() { wait_for /dev/nvme0n1 || fail 'the kernel does not take the drive back'; }
disk
dd if=/dev/nvme0n1 of=/tmp/whole bs=1M 2>/dev/null
if ! mkswap /dev/nvme0n1 >/dev/null || ! swapon /dev/nvme0n1; then fail 'no swap on the drive'; fi
xio refused "kmod:$drive/1" kmod:/dev/nvme0n1 kmod:ffff:00:00.0/1 kmod:x "kmod:$drive/0"
said "refused kmod:$drive/1.*nvme0n1 is swapped on; free it"
said 'refused kmod:/dev/nvme0n1.*nvme0n1 is swapped on'
said 'refused kmod:ffff.*no PCI function'
said 'refused kmod:x .*write it as kmod:BDF/NSID'
said 'refused kmod:.*/0.*a number from 1'
swapoff /dev/nvme0n1
xio refused "kmod:$drive/1"
said "refused kmod:$drive/1.*bound to the driver nvme and not to xio"
xio stamp /dev/nvme0n1 1
bind_to xio
xio refused "kmod:$drive/9"
said 'no active namespace 9'
# Without an IOMMU that translates the heap lies in pieces on the bus, which kernels look up.
xio asked "kmod:$drive/1"
said 'depth-mqes.*CAP.MQES'
XIO_NVME_DOORBELL=bar xio move "kmod:$drive/1" 1 1 2 1
XIO_NVME_DOORBELL=host xio move "kmod:$drive" 1 2 3 4
# More queues than the controller has left.
xio move "kmod:$drive/1" 1 3 4 6
said 'has 4 I/O queues left and not the 6'
xio leave "kmod:$drive/1"
# Two processes share the controller, each with queues of its own.
timeout 300 "$kmod_drive" zero "kmod:$drive/1" >/tmp/first.out 2>&1 &
pid=$!
sleep 0.2
xio refused kmod:x
wait $pid || { fail 'compare and write zeroes' && sed 's/^/  /' /tmp/first.out; }
# One is killed while its queue is full of reads; the other goes on.
: >/tmp/endless
"$kmod_drive" endless "kmod:$drive/1" >/tmp/endless 2>&1 &
pid=$!
wait_for_word moving /tmp/endless
{ sleep 2 && kill -KILL $pid; } &
xio move "kmod:$drive/1" 1 4 5 1
if wait $pid; then fail 'a process was not killed in its reads'; fi
# Its queue is given back: all four can be had again.
xio move "kmod:$drive/1" 1 5 6 4
if grep -q 'I/O queues left' /tmp/out; then fail 'a killed process keeps its queue' && cat /tmp/out; fi
# The drive is taken away in mid-read: its mappings end, and a kernel of the host platform finds its ring failed.
# strike NAME VALUE FILE: which is written to take it away.
strike() {
  : >/tmp/endless
  XIO_NVME_DOORBELL=bar timeout 300 "$kmod_drive" endless "kmod:$drive/1" >/tmp/endless 2>&1 &
  pid=$!
  wait_for_word moving /tmp/endless
  echo "$2" >"$3"
  if wait $pid && grep -q "lost kmod:$drive/1: XIO_ERR_TRANSPORT" /tmp/endless; then
    echo "ok   drive $1 in mid-read"
  else
    fail "a drive that was $1 in mid-read ends the process with $?" && sed 's/^/  /' /tmp/endless
  fi
}
strike unbound "$drive" /sys/bus/pci/drivers/xio/unbind
bind_to xio
if [ -e "/sys/bus/pci/devices/$drive/reset" ]; then strike reset 1 "/sys/bus/pci/devices/$drive/reset"; fi
strike removed 1 "/sys/bus/pci/devices/$drive/remove"
echo 1 >/sys/bus/pci/rescan
bind_to xio

# ---- memory of another device: the BAR of a function that has no driver, by the dma-buf of its exporter, in pieces
window=0000:00:0a.0
insmod /share/bar_export.ko device=$window bar=2 piece=65536 || { fail 'the exporter does not load' && dmesg | tail -n 5; }
export XIO_TEST_EXPORTER=/dev/bar_export
xio move "kmod:$drive/1" 1 6 7 2
XIO_NVME_DOORBELL=host xio move "kmod:$drive/1" 1 7 8 1
# Two processes have the one BAR, each a part of it.
: >/tmp/endless
XIO_TEST_EXPORTER_SKIP=25165824 "$kmod_drive" endless "kmod:$drive/1" >/tmp/endless 2>&1 &
pid=$!
wait_for_word moving /tmp/endless
{ sleep 2 && kill -KILL $pid; } &
xio move "kmod:$drive/1" 1 8 9 1
if wait $pid; then fail 'a process was not killed while it read into the BAR'; fi
# Nothing of the dead one is written any more: the memory keeps what is put there now.
xio leave "kmod:$drive/1"
xio move "kmod:$drive/1" 1 9 10 4
if grep -q 'I/O queues left' /tmp/out; then fail 'a process that was killed keeps its queue' && cat /tmp/out; fi
unset XIO_TEST_EXPORTER
rmmod bar_export || fail 'the exporter is still in use'
bind_to ''
disk
xio verify /dev/nvme0n1 1 10
dd if=/tmp/whole of=/dev/nvme0n1 bs=1M conv=fsync 2>/dev/null || fail 'the drive cannot be written back'

# ---- a namespace that Linux has mounted through another controller
alone=$drive
drive=$second && bind_to xio
drive=$first && bind_to nvme
wait_for "/dev/nvme1n1" || fail 'the kernel does not find the shared namespace'
modprobe crc32c_generic && modprobe ext4
mkdir -p /tmp/mounted
if mount -t ext4 /dev/nvme1n1 /tmp/mounted; then
  xio refused "kmod:$second/1"
  said "refused kmod:$second/1.*its namespace may be shared, and Linux has it through another controller: nvme1n1 is mounted on /tmp/mounted; free it"
  umount /tmp/mounted
else
  fail 'the shared namespace cannot be mounted'
fi
xio leave "kmod:$second/1"

# ---- two drives, each in a domain of its own where the IOMMU translates
drive=$first && echo "$drive" >"/sys/bus/pci/devices/$drive/driver/unbind"
drive=$alone && bind_to xio
xio copy "kmod:$alone/1" "kmod:$second/1"
xio copy "kmod:$alone/1" "kmod:$alone/1"
xio zero "kmod:$alone/1,kmod:$second/1"
begin=$(cut -d' ' -f1 /proc/uptime)
if timeout 300 "$kmod_tester" nvme-ep --controller "kmod:$alone/1" --memory-mode 3 --i-know --write-io 60 --read-io 60 --queue-length 16 \
  --num-queues 2 --batch-size 8 --lbas-per-io 5 --access-pattern random --verify >/tmp/out 2>&1; then
  awk -v from="$begin" '{printf "ok   xio-tester nvme-ep (%.1f s)\n", $1 - from}' /proc/uptime
else
  fail 'xio-tester nvme-ep' && tail -n 20 /tmp/out | sed 's/^/  /'
fi
bind_to ''
echo "$second" >"/sys/bus/pci/devices/$second/driver/unbind"
for one in $first $second; do echo none >"/sys/bus/pci/devices/$one/driver_override"; done

# ---- a kernel that is locked down, which it stays
mount -t securityfs securityfs /sys/kernel/security
if echo integrity >/sys/kernel/security/lockdown; then
  bind_to xio
  try lockdown "$drive" "$translated"
  bind_to ''
else
  echo 'skip lockdown: this kernel has none'
fi

# ---- and away
[ "$(awk '$1 == "xio" {print $3}' /proc/modules)" = 0 ] || fail "the module is in use: $(grep '^xio' /proc/modules)"
rmmod xio || fail 'the module cannot be unloaded'
[ ! -e /dev/xio ] || fail '/dev/xio stays'
[ "$(dmabufs)" = 0 ] || fail "$(dmabufs) dma-bufs are left"
if dmesg | grep -E 'WARNING|BUG|Oops|Call Trace|UBSAN|refcount_t|DMAR:.*[Ff]ault|general protection|hung task'; then
  fail 'the kernel complains'
  dmesg | grep -A 30 -E 'WARNING|BUG|Oops|UBSAN|general protection' | head -n 60
fi
if [ $failures != 0 ]; then dmesg | grep xio | head -n 20; fi
echo "$failures failures"
[ $failures = 0 ]
