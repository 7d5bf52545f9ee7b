#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, whose kernels drive queues of a simulated Pollara, made by the system calls of a simulated
# Linux 6.18; and how a kernel or NIC that cannot is named.
# shellcheck source=tests/uverbs/queues.sh
. "${0%/*}/queues.sh" ionic || exit 1
suite any 2 rdma rma atomics signals immediate sync
echo 'four queue pairs a peer'
XIO_RDMA_QUEUES=4 suite any 2 rdma signals
echo 'rings of a page, which are the smallest'
XIO_RING_DEPTH=16 suite any 2 rdma signals
echo 'interface 1'
XIO_TEST_UVERBS_FAULTS=interface1 suite any 2 rdma signals

expect old_kernel 'RDMA device ionic_0: the ionic driver of Linux [0-9.]+.* has no completion queues by system calls'
expect no_rdma 'has no RDMA on this NIC.s firmware'
expect old_firmware 'RDMA device ionic_0 makes no queue pair: .*; the NIC.s firmware is too old'
expect no_pin 'RDMA device ionic_0 makes no completion queue: Bad address; the driver cannot pin'
expect port_down 'RDMA device ionic_0 port 1 is not up'
expect no_register 'RDMA device ionic_0 cannot register [0-9]+ bytes'
expect no_way 'ionic_0:1 .* does not go from INIT to RTR .*: Connection timed out; no way to the peer'
XIO_NIC_FAMILY=bnxt expect none 'RDMA device ionic_0 has queues of ionic'
XIO_RING_DEPTH=32768 expect none 'a queue depth of 32768 is not possible on RDMA device ionic_0 port 1, .*; set XIO_RING_DEPTH'
XIO_MEMORY_MODE=7 expect none 'pins rings by address'

posts 'kernels_post *yes (its driver makes queues in given memory'
posts 'port1_usable *yes'
XIO_TEST_UVERBS_FAULTS=old_kernel posts 'kernels_post *no (RDMA device ionic_0: the ionic driver of Linux .*want ionic_rdma of Linux 6.18'
# As a kernel before 6.18 shows the NIC: by its Ethernet driver alone.
function=$XIO_TEST_UVERBS_SESSION/sys/bus/pci/devices/0000:81:00.0
mkdir -p "$function"
echo 0x1dd8 >"$function/vendor"
echo 0x020000 >"$function/class"
posts 'kernels_post *no (Linux .* has made no RDMA device of it: load ionic_rdma (Linux 6.18 or newer)'
out=$(XIO_TEST_UVERBS_ABI=4 env -u XIO_NIC_FAMILY -u XIO_BACKEND "${0%/*}/run" "$builddir/xio-info" 2>&1)
if ! grep -q "kernels_post *no (RDMA device ionic_0: its driver has version 4 of its interface" <<<"$out"; then
  fail 'xio-info does not say that the driver has another interface'
fi
end
