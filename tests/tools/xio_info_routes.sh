#!/bin/bash
# SPDX-License-Identifier: MIT
# Worlds whose GPUs lack AtomicOps between them: another route or a clear error, and atomics that are right. The GPUs
# are entries of a dump; the PEs are this machine's.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
info=$builddir/xio-info
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
if ! has XIO_ENABLE_MODEL; then skip 'this build has no software NIC to go by'; fi
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then skip 'no AMD GPU here'; fi
unset "${!XIO_@}" 2>/dev/null

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
# world STATUS SENTENCE DUMP VARIABLE=VALUE...: two PEs on that machine.
world() { replies "$1" "$2" env "XIO_PCIE_DUMP=$work/$3" "${@:4}" "$start" -n 2 "$info" --world; }

world 0 'pe1_8 +direct' good "$gpus"
silent 'do not reach'
# One GPU for both: memory of its own.
world 0 'pe1_8 +direct' blind XIO_PCIE_GPUS=01:00.0

world 0 'pe0_8 +rdma' blind "$gpus"
says 'pe1_8 +rdma'
silent ' direct$'
says 'atomics of GPU 0000:01:00\.0 do not reach GPU 0000:02:00\.0: at 0000:00:01\.0 the root port routes no AtomicOps \(DevCap2 bit 6 is 0\)'
says 'go by RDMA'
# Only one direction fails: both PEs change their ways all the same.
world 0 'at 0000:02:00\.0 the device completes no' mute "$gpus"
silent ' direct$'
silent 'atomics of GPU 0000:02:00\.0 do not reach'
# What was asked for and cannot be is an error, on the PE that sees the obstacle and on the other.
for route in direct sdma; do
  world 1 "route $route wants heaps that kernels of all PEs read and change: atomics of GPU 0000:01:00\.0 do not reach" blind "$gpus" XIO_ROUTE=$route
  says 'XIO_ROUTE=auto or rdma'
done
world 0 'pe1_8 +rdma' blind "$gpus" XIO_ROUTE=rdma
# Copies count to copy engines no more.
world 0 '' blind "$gpus" XIO_SDMA_THRESHOLD=1M
silent ' (direct|sdma)$'

# The results are right.
for program in atomics signals; do
  returns 0 env "XIO_PCIE_DUMP=$work/blind" "$gpus" "$start" -n 2 "$builddir/tests/mpi/$program"
done

world 1 'XIO_PCIE_DUMP: .*cannot be read' nowhere "$gpus"
world 1 'the GPU 0000:05:00\.0 is not among the PCI functions' good XIO_PCIE_GPUS=01:00.0,05:00.0
world 1 "'here' is no PCI address" good XIO_PCIE_GPUS=here

finish
