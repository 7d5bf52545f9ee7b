#!/bin/bash
# SPDX-License-Identifier: MIT
# xio-info --atomics on machines that dumps describe: which port fails, by which bit, and the cure that is printed.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
info=$builddir/xio-info
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
unset "${!XIO_@}" 2>/dev/null

# run STATUS ARGUMENT...: of xio-info.
run() { returns "$1" "$info" "${@:2}"; }
# machine NAME: makes a dump of the lines on standard input. The machine's name is for messages.
machine() { awk -f "$srcdir/tests/tools/pci_dump.awk" >"$work/$1"; }
# ask NAME DEVICE SENTENCE...: what is said of that device.
ask() {
  run 0 --atomics "$2" --dump "$work/$1"
  says_all "${@:3}"
}
# refuses SENTENCE ARGUMENT...: of xio-info, as a wrong command line or dump.
refuses() {
  run 2 "${@:2}"
  says "$1"
}

# Class codes: 0302 3D controller, 0207 InfiniBand, 0604 bridge. Types: 0 endpoint, 4 root port, 5 and 6 the upstream and
# downstream ports of a switch. DevCap2 bits: 6 routes, 7 completes 32, 8 completes 64, 9 compare-swap of 128.
root='0000:00:01.0 id=1022:14ab class=0604 header=01 bus=00,01,08 type=4'
gpu0='0000:03:00.0 id=1002:740f class=0302 type=0'

# --- The requester's bit ---
machine on <<<"$root cap2=380
0000:01:00.0 id=1002:740f class=0302 type=0 cap2=180 ctl2=40"
ask on 01:00.0 '^GPU 0000:01:00\.0 \(1002:740f, endpoint\)'
says '0000:00:01\.0 +root port 1022:14ab: routes no, completes 32 64 128$'
says 'requester_enabled +yes'
says 'to_host +yes \(completes 32 64 128\)'
says 'ordered_by_id +requests no, completions no'

# --- What was ordered by requesters, and what was aborted ---
machine aborted <<<"$root cap2=380 aer=1000000
0000:01:00.0 id=1002:740f class=0302 type=0 cap2=180 ctl2=140 aer=2000000"
ask aborted 01:00.0 'ordered_by_id +requests yes, completions no'
says '0000:00:01\.0 +root port .*, has aborted one \(AER bit 24\)$'
machine both_ways <<<"$root cap2=380 acs=0 aer=2000000 vfs=2,8,1
0000:01:00.0 id=1002:740f class=0302 type=0 cap2=180 ctl2=340"
ask both_ways 01:00.0 'ordered_by_id +requests yes, completions yes'
silent 'aborted'

machine off <<<"$root cap2=180
0000:01:00.0 id=1002:740f class=0302 type=0 cap2=180"
ask off 0000:01:00.0 'requester_enabled +no' 'to_host +off \(completes 32 64\)' 'to_host_at +0000:01:00\.0'
says 'to_host_why .*DevCtl2 bit 6 is 0'
says 'to_host_cure .*setpci -s 0000:01:00\.0 CAP_EXP\+28\.w=40:40'
says 'xio-info --atomics 0000:01:00\.0 --enable'

# --- The root port ---
machine root64 <<<"$root cap2=80
0000:01:00.0 id=1002:740f class=0302 type=0 ctl2=40"
ask root64 01:00.0 'to_host +no$' 'to_host_at +0000:00:01\.0'
says 'the root port completes no 64-bit \(DevCap2 bit 8 is 0\) AtomicOps'
machine root0 <<<"$root
0000:01:00.0 id=1002:740f class=0302 type=0 ctl2=40"
ask root0 01:00.0 'no 32-bit \(DevCap2 bit 7 is 0\) and 64-bit \(DevCap2 bit 8 is 0\)'
machine old <<<"$root version=1 cap2=3c0
0000:01:00.0 id=1002:740f class=0302 type=0 ctl2=40"
ask old 01:00.0 'to_host +no$'

# --- A switch ---
# upstream CAP2 CTL2, downstream CAP2 CTL2 ACS: a GPU and a NIC behind one switch, root port as given.
switch() {
  machine "$1" <<<"$root cap2=$2
0000:01:00.0 id=11f8:4000 class=0604 header=01 bus=01,02,08 type=5 $3
0000:02:00.0 id=11f8:4000 class=0604 header=01 bus=02,03,03 type=6 $4
0000:02:01.0 id=11f8:4000 class=0604 header=01 bus=02,04,04 type=6 $5
$gpu0 cap2=180 ctl2=40
0000:04:00.0 id=15b3:1021 class=0207 type=0 ctl2=40"
}
switch good 180 cap2=40 cap2=40 cap2=40
ask good 03:00.0 'to_host +yes'
ask good 04:00.0 '^NIC 0000:04:00\.0' 'to_0000:03:00\.0 +yes \(completes 32 64\)'
# Without a device: both.
run 0 --atomics --dump "$work/good"
says '^GPU 0000:03:00\.0'
says '^NIC 0000:04:00\.0'
silent '^bridge'

switch up_blind 180 '' cap2=40 cap2=40
ask up_blind 03:00.0 'to_host +no$' 'to_host_at +0000:01:00\.0' "upstream port routes no AtomicOps \(DevCap2 bit 6 is 0\)"
ask up_blind 04:00.0
# Requests turn inside the switch, below that port.
says 'to_0000:03:00\.0 +yes'

switch down_blind 180 cap2=40 '' cap2=40
ask down_blind 03:00.0 'to_host_at +0000:02:00\.0' "downstream port routes no AtomicOps"
ask down_blind 04:00.0 'to_host +yes' 'to_0000:03:00\.0_at +0000:02:00\.0'

switch blocked 180 'cap2=40 ctl2=80' cap2=40 cap2=40
ask blocked 03:00.0 'to_host_at +0000:01:00\.0' 'DevCtl2 bit 7 is 1'
says 'to_host_cure .*setpci -s 0000:01:00\.0 CAP_EXP\+28\.w=0:80'

# Blocking counts where requests leave: down to the GPU, not up from it.
switch blocked_down 180 cap2=40 'cap2=40 ctl2=80' cap2=40
ask blocked_down 03:00.0 'to_host +yes'
ask blocked_down 04:00.0 'to_0000:03:00\.0 +no' 'to_0000:03:00\.0_cure .*setpci -s 0000:02:00\.0 CAP_EXP\+28\.w=0:80'

# ACS sends them up to a root port that does not route, or does.
switch acs 180 cap2=40 cap2=40 'cap2=40 acs=4'
ask acs 04:00.0 'to_0000:03:00\.0 +no' 'to_0000:03:00\.0_at +0000:00:01\.0' 'setpci -s 0000:02:01\.0 ECAP_ACS\+6\.w=0:4'
switch acs_routed 1c0 cap2=40 cap2=40 'cap2=40 acs=4'
ask acs_routed 04:00.0 'to_0000:03:00\.0 +yes'

# --- A completer that does not, two root ports, two host bridges ---
machine ports <<<"$root cap2=1c0
0000:00:02.0 id=1022:14ab class=0604 header=01 bus=00,09,09 type=4 cap2=1c0
0000:80:01.0 id=1022:14ab class=0604 header=01 bus=80,81,81 type=4 cap2=1c0
0000:01:00.0 id=15b3:1021 class=0207 type=0 ctl2=40
0000:09:00.0 id=1002:740f class=0302 type=0 cap2=180 ctl2=40
0000:81:00.0 id=1002:740f class=0302 type=0 cap2=80 ctl2=40"
ask ports 01:00.0 'to_0000:09:00\.0 +yes' 'to_0000:81:00\.0 +no' 'the device completes no 64-bit'
ask ports 09:00.0 'to_0000:81:00\.0 +no'
ask ports 81:00.0 'to_0000:09:00\.0 +unknown' 'another host bridge'

# --- Virtual functions: their physical function's bit counts ---
machine vf <<<"$root cap2=180
0000:01:00.0 id=1002:74a1 class=1200 type=0 ctl2=40 vfs=2,8,1
0000:01:01.0 id=ffff:ffff class=1200 type=0
0000:01:01.1 id=ffff:ffff class=1200 type=0
0000:01:01.2 id=ffff:ffff class=1200 type=0"
ask vf 01:01.1 'virtual_function_of +0000:01:00\.0' 'requester_enabled +yes' 'to_host +yes'
ask vf 01:01.2 'to_host +unknown' 'its physical function is not in sight'

# --- Guests ---
qemu='0000:00:03.0 id=1b36:000c class=0604 header=01 bus=00,01,01 type=4'
machine multifunction <<<"$qemu
0000:01:00.0 id=1002:744c class=0300 header=80 type=0
0000:01:00.1 id=1002:ab30 class=0403 header=80 type=0"
ask multifunction 01:00.0 'to_host_at +0000:00:03\.0' 'function 0 alone'
says '-device pcie-root-port,id=rp1,chassis=1,slot=1 -device vfio-pci,host=BDF,bus=rp1'
machine alone <<<"$qemu
0000:01:00.0 id=1002:744c class=0300 type=0"
ask alone 01:00.0 'QEMU 8\.1 or later'
silent 'function 0 alone'
machine root_bus <<<"0000:00:00.0 id=8086:29c0 class=0600 subsystem=1af4
0000:00:04.0 id=1002:744c class=0300 type=9 cap2=180"
ask root_bus 00:04.0 'to_host +no' "guest's root bus" 'pcie-root-port'
machine i440fx <<<"0000:00:00.0 id=8086:1237 class=0600 subsystem=1af4
0000:00:04.0 id=1002:744c class=0300"
ask i440fx 00:04.0 'no PCI Express capability' 'machine q35'
# The same place in a machine that is nobody's guest: nothing speaks for it.
machine integrated <<<"0000:00:08.0 id=1002:15bf class=0300 type=9 cap2=180"
ask integrated 00:08.0 'to_host +unknown'

# A dump of one function: the port above it is missing, and not the root complex.
machine one <<<"0000:0b:00.0 id=1002:744c class=0300 type=1 cap2=180"
ask one 0b:00.0 'to_host +unknown' 'no port that leads to its bus, 0000:0b, is in sight'
says 'lspci -xxxx.*setpci -s 0000:0b:00\.0 CAP_EXP\+28\.w=40:40'

# --- Not allowed to look ---
machine user <<<"$root cap2=180 bytes=64
0000:01:00.0 id=1002:740f class=0302 type=0 bytes=64"
ask user 01:00.0 'to_host +unknown' 'cannot be read' 'run as root'
silent 'requester_enabled'

# --- JSON ---
if command -v python3 >/dev/null; then
  run 0 --atomics 01:00.0 --dump "$work/off" --json
  holds 'JSON says something else' [ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)["0000:01:00.0"]["to_host"])' <<<"$out")" = off ]
fi

# --- What it refuses ---
refuses 'cannot be read' --atomics 01:00.0 --dump "$work/nowhere"
: >"$work/empty"
refuses 'describes no PCI function' --atomics --dump "$work/empty"
# Not for so long that memory is gone.
out=$(timeout 20 "$info" --atomics --dump /dev/zero 2>&1)
[ $? = 2 ] || wrong 'a dump without an end was not refused'
says 'is no dump of lspci'
# bad NAME SENTENCE: standard input is the dump.
bad() {
  cat >"$work/$1"
  refuses "$2" --atomics --dump "$work/$1"
}
bad bytes 'line 2 is no row of bytes' <<<"01:00.0 GPU
00: 02 10 zz 74"
bad gap 'line 2 is no row of bytes' <<<"01:00.0 GPU
00: 02 10  0f 74"
bad beyond 'line 2 reaches beyond' <<<"01:00.0 GPU
ff8: 00 00 00 00 00 00 00 00 00"
# An offset that a 32-bit number holds as a negative one.
bad before 'line 2 reaches beyond' <<<"01:00.0 GPU
ffffff00: 41 41 41 41"
bad twice 'describes 0000:01:00\.0 a second time' <<<"01:00.0 GPU
0000:01:00.0 GPU"
bad address 'no address' <<<"01:ff.9 GPU"
# Bridges in a circle: xio-info ends with a report.
machine circle <<<"0000:01:00.0 id=1022:14ab class=0604 header=01 bus=00,02,ff type=5 cap2=40
0000:02:00.0 id=1022:14ab class=0604 header=01 bus=00,01,ff type=6 cap2=40
0000:03:00.0 id=1002:740f class=0302 type=0 cap2=180"
ask circle 03:00.0 'to_host +'

refuses "'nonsense' is no PCI address; give \[domain:\]bus:device\.function" --atomics nonsense --dump "$work/on"
refuses 'there is no PCI function 0000:05:00\.0; there are: 0000:01:00\.0' --atomics 05:00.0 --dump "$work/on"
refuses 'wants a device' --atomics --enable
refuses 'does not go with --dump' --atomics 01:00.0 --enable --dump "$work/on"
refuses 'goes with --atomics' --dump "$work/on"
run 2 --atomics --env
refuses 'did you mean --atomics\?' --atomic
refuses 'there is no PCI function 0000:ff:1f\.7' --atomics ff:1f.7 --enable
# This machine, of any kind.
run 0 --atomics

finish
