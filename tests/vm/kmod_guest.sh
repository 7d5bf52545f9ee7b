# shellcheck shell=dash
# SPDX-License-Identifier: MIT
# What tests/vm/kmod.sh runs in a guest: the module is loaded, its calls driven by tests/vm/kmod, its drive checked against Linux' own nvme
# driver, and the module unloaded. /share/plan sets kmod (the program), translated (1: behind an IOMMU), seconds and seed of the fuzz.
# shellcheck source=/dev/null
. /share/plan
: "${kmod:?}" "${translated:?}" "${seconds:?}" "${seed:?}"
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

find_drive() {
  local device
  for device in /sys/bus/pci/devices/*; do
    if [ "$(cat "$device/class")" = 0x010802 ]; then
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

modprobe nvme
mount -t debugfs debugfs /sys/kernel/debug
drive=$(find_drive) || { fail 'no NVMe controller in this guest' && exit 1; }
wait_for /dev/nvme0n1 || fail 'the kernel finds no drive'
insmod /share/xio.ko || { fail 'the module does not load' && dmesg | tail -n 20 && exit 1; }
[ "$(stat -c %a /dev/xio)" = 660 ] || fail "/dev/xio has the mode $(stat -c %a /dev/xio)"

# ---- beside another driver
try calls "$drive" "$translated"
if "$kmod"_open kmod:/dev/nvme0n1 >/tmp/out 2>&1 && grep -q "driver lends none of its queues; bind $drive to vfio-pci and open nvme:$drive/1" /tmp/out; then
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
