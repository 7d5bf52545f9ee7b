#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A drive of the simulated module and memory of the AMD GPU in software: kernels read it into VRAM, verify it
# there and write it back; then what is said where that cannot be. tests/amdgpu/check runs it; XIO_TEST_BUILDDIR is a
# build with hipcc.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${XIO_TEST_BUILDDIR:?} name=kmod:0000:01:00.0/1
program=$build/tests/kmod/device_memory
# shellcheck source=tests/kmod/steps.sh
. "$here/steps.sh"
inside=("$here/../amdgpu/run" "$here/run")
disk=$work/disk
# The copy engine of a lone GPU on PCIe is no matter here.
export XIO_BOOTSTRAP=local XIO_HEAP_SIZE=16M XIO_TIMEOUT_MS=60000 XIO_TEST_KMOD_DRIVE=$disk HSA_FORCE_FINE_GRAIN_PCIE=1
# moves BYTES KIND WHAT PIECE VARIABLE=VALUE...: on a fresh drive of that size.
moves() {
  rm -f "$disk"
  truncate -s "$1" "$disk"
  "$program" stamp "$disk" 1
  must "$3 in pieces of $4, read, verified and written" env XIO_TEST_KMOD_PIECE="$4" "${@:5}" "${inside[@]}" "$program" move "$2" $name 1 1 2
  must "what was written" "$program" verify "$disk" 1 2
}
moves 16M heap 'a heap in VRAM' 4096
moves 16M hip 'memory of hipMalloc' 65536
moves 8M 16 'fine-grained memory' 2097152
moves 8M 17 'coarse-grained memory' 0
moves 2M heap 'a heap in VRAM, doorbells by the host' 65536 XIO_NVME_DOORBELL=host
# The HDP of these holds back what a drive writes to completions (docs/hdp.md).
modes=(9 10 11)
if [ "${XIO_AMDGPU_TARGET:-gfx90a}" = gfx1100 ]; then modes=(9); fi
for mode in "${modes[@]}"; do
  moves 2M heap "a heap and queues in VRAM, memory mode $mode," 2097152 XIO_MEMORY_MODE="$mode"
done
moves 1M heap 'a heap and queues in VRAM, memory that is late,' 2097152 XIO_AMDGPU_MEMORY=adversary XIO_MEMORY_MODE="${modes[-1]}"
moves 1M heap 'a heap in VRAM, memory that is late' 65536 XIO_AMDGPU_MEMORY=adversary

# Two drives that see the memory at different addresses.
truncate -s 2M "$work/first" "$work/second"
must 'stripes over two drives, a heap in VRAM' env XIO_TEST_KMOD_DRIVE="$work/first" XIO_TEST_KMOD_DRIVE_2="$work/second" \
  XIO_TEST_KMOD_PIECE=65536 "${inside[@]}" "$program" again heap $name,kmod:0000:02:00.0/1

refused=("${inside[@]}" "$program" refused)
refuses 'into system memory; use a GPU and a root port' XIO_TEST_KMOD_GPU_MEMORY=system "${refused[@]}" heap $name
refuses 'with a large BAR' XIO_AMDGPU_LARGE_BAR=0 "${refused[@]}" heap $name
refuses 'more pieces than a pin may have' XIO_TEST_KMOD_SEGMENTS=10 "${refused[@]}" heap $name
refuses 'makes no queues in memory of the GPU; load that of this version' XIO_TEST_KMOD_MODULE=older env XIO_MEMORY_MODE=9 "${refused[@]}" heap $name
refuses 'do not lie in one piece of the bus' XIO_MEMORY_MODE=9 env XIO_TEST_KMOD_PIECE=4096 "${refused[@]}" heap $name
if [ ${#modes[@]} = 1 ]; then
  for mode in 10 11; do refuses 'its host data path holds back what a drive writes' XIO_MEMORY_MODE=$mode "${refused[@]}" heap $name; done
fi
refuses 'its doorbells are registers' XIO_MEMORY_MODE=12 "${refused[@]}" heap $name
refuses 'does not reach the memory that kernels see' XIO_TEST_KMOD_PINS=elsewhere "${refused[@]}" heap $name
refuses 'does not reach the GPU memory that kernels see' XIO_TEST_KMOD_PINS=later_elsewhere "${refused[@]}" hip $name
must 'nothing was written' "$program" verify "$disk" 1 2
truncate -s 4M "$disk"
says 'were freed while they were registered' 'memory that is freed while it is registered' "${inside[@]}" "$program" freed $name

# Two PEs, each on a GPU of its own.
export XIO_AMDGPU_GPUS=2
unset XIO_BOOTSTRAP
must 'relay of a drive' "${inside[@]}" "$build/xiorun" -n 2 "$build/examples/relay/relay" --in $name --out "$work/copy" --chunk 65536 --slots 4
must 'what relay wrote' cmp "$disk" "$work/copy"
must 'kv_fetch of a drive' "${inside[@]}" "$build/xiorun" -n 2 "$build/examples/kv_fetch" $name 20 4096
echo "device memory: $SECONDS s"
exit $((failed != 0))
