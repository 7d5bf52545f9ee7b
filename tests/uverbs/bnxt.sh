#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, whose kernels drive queues of a simulated Thor2, made by the system calls of a simulated
# Linux 7.2; and how a kernel or NIC that cannot is named.
# shellcheck source=tests/uverbs/queues.sh
. "${0%/*}/queues.sh" bnxt || exit 1
suite any 2 rdma rma atomics signals immediate sync
echo 'four queue pairs a peer'
XIO_RDMA_QUEUES=4 suite any 2 rdma signals

expect old_kernel "RDMA device bnxt_re0: bnxt_re of Linux [0-9.]+.* has no doorbell pages for users"
expect no_fixed 'has no queue pairs of given sizes'
expect static_mode 'entries of variable size on this NIC'
expect no_pin 'RDMA device bnxt_re0 makes no completion queue: Bad address; the driver cannot pin'
expect port_down 'RDMA device bnxt_re0 port 1 is not up'
expect no_register 'RDMA device bnxt_re0 cannot register [0-9]+ bytes'
expect no_way 'bnxt_re0:1 .* does not go from INIT to RTR .*: Connection timed out; no way to the peer'
XIO_RING_DEPTH=32768 expect none 'a queue depth of 32768 is not possible on RDMA device bnxt_re0 port 1, .*; set XIO_RING_DEPTH'
XIO_NIC_FAMILY=mlx5 expect none 'RDMA device bnxt_re0 has queues of bnxt'

posts 'kernels_post *yes (its driver makes queues in given memory'
posts 'port1_usable *yes'
XIO_TEST_UVERBS_FAULTS=old_kernel posts 'kernels_post *no (RDMA device bnxt_re0: bnxt_re of Linux .*want Linux 7.2 or newer'
end
