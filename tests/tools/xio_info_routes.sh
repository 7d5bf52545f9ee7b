#!/bin/bash
# SPDX-License-Identifier: MIT
# Worlds whose GPUs lack AtomicOps between them: another route or a clear error, and atomics that are right. The GPUs
# are entries of a dump; the PEs are this machine's.
set -uo pipefail
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${gpu:?}" "${start:?}"
# shellcheck source=tests/tools/said.sh
. "$srcdir/tests/tools/said.sh"
info=$builddir/xio-info
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
if ! has XIO_ENABLE_MODEL; then skip 'this build has no software NIC to go by'; fi
if ! can_start; then skip 'nothing starts PEs: neither libsodium nor MPI is in this build'; fi
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then skip 'no AMD GPU here'; fi
unset "${!XIO_@}" 2>/dev/null
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# run STATUS SETTING... -- PROGRAM...: with two PEs; $out is all that they printed.
run() {
  local expected=$1 got settings=()
  shift
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  out=$(env "${settings[@]}" timeout -k 5 120 "$start" -n 2 "$@" 2>&1)
  got=$?
  checks=$((checks + 1))
  [ "$got" = "$expected" ] || wrong "status $got and not $expected: ${settings[*]} $*"
}
silent() {
  checks=$((checks + 1))
  ! grep -qE -- "$1" <<<"$out" || wrong "said: $1"
}
# Two GPUs, each on a root port: with routing in the ports or without, the second with or without completers.
machine() {
  awk -f "$srcdir/tests/tools/pci_dump.awk" >"$work/$1" <<END
0000:00:01.0 id=1022:14ab class=0604 header=01 bus=00,01,01 type=4 cap2=$2
0000:00:02.0 id=1022:14ab class=0604 header=01 bus=00,02,02 type=4 cap2=$2
0000:01:00.0 id=1002:740f class=0302 type=0 cap2=180 ctl2=40
0000:02:00.0 id=1002:740f class=0302 type=0 cap2=$3 ctl2=40
END
}
machine good 1c0 180
machine blind 180 180
machine mute 1c0 0
gpus=XIO_PCIE_GPUS=01:00.0,0000:02:00.0

run 0 "XIO_PCIE_DUMP=$work/good" "$gpus" -- "$info" --world
says 'pe1_8 +direct'
silent 'do not reach'
# One GPU for both: memory of its own.
run 0 "XIO_PCIE_DUMP=$work/blind" XIO_PCIE_GPUS=01:00.0 -- "$info" --world
says 'pe1_8 +direct'

run 0 "XIO_PCIE_DUMP=$work/blind" "$gpus" -- "$info" --world
says 'pe0_8 +rdma'
says 'pe1_8 +rdma'
silent ' direct$'
says 'atomics of GPU 0000:01:00\.0 do not reach GPU 0000:02:00\.0: at 0000:00:01\.0 the root port routes no AtomicOps \(DevCap2 bit 6 is 0\)'
says 'go by RDMA'
# Only one direction fails: both PEs change their ways all the same.
run 0 "XIO_PCIE_DUMP=$work/mute" "$gpus" -- "$info" --world
silent ' direct$'
says 'at 0000:02:00\.0 the device completes no'
silent 'atomics of GPU 0000:02:00\.0 do not reach'
# What was asked for and cannot be is an error, on the PE that sees the obstacle and on the other.
for route in direct sdma; do
  run 1 "XIO_PCIE_DUMP=$work/blind" "$gpus" XIO_ROUTE=$route -- "$info" --world
  says "route $route wants heaps that kernels of all PEs read and change: atomics of GPU 0000:01:00\.0 do not reach"
  says 'XIO_ROUTE=auto or rdma'
done
run 0 "XIO_PCIE_DUMP=$work/blind" "$gpus" XIO_ROUTE=rdma -- "$info" --world
says 'pe1_8 +rdma'
# Copies count to copy engines no more.
run 0 "XIO_PCIE_DUMP=$work/blind" "$gpus" XIO_SDMA_THRESHOLD=1M -- "$info" --world
silent ' (direct|sdma)$'

# The results are right.
for program in atomics signals; do
  run 0 "XIO_PCIE_DUMP=$work/blind" "$gpus" -- "$builddir/tests/mpi/$program"
done

run 1 "XIO_PCIE_DUMP=$work/nowhere" "$gpus" -- "$info" --world
says 'XIO_PCIE_DUMP: .*cannot be read'
run 1 "XIO_PCIE_DUMP=$work/good" XIO_PCIE_GPUS=01:00.0,05:00.0 -- "$info" --world
says 'the GPU 0000:05:00\.0 is not among the PCI functions'
run 1 "XIO_PCIE_DUMP=$work/good" XIO_PCIE_GPUS=here -- "$info" --world
says "'here' is no PCI address"

echo "$checks checks, $failures failed"
exit $((failures != 0))
