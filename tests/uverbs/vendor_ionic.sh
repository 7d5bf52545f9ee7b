#!/bin/bash
# SPDX-License-Identifier: MIT
# A Pollara whose driver is AMD's own: queues that kernels drive are made by libionic, for which a library of ours stands
# in (tests/uverbs/vendor). The same programs as by system calls, the sentences where it makes none, and its rules.
export XIO_TEST_UVERBS_VENDOR=1
# shellcheck source=tests/uverbs/queues.sh
. "${0%/*}/queues.sh" ionic || exit 1
suite any 2 rdma rma atomics signals immediate sync
XIO_RDMA_QUEUES=4 suite any 2 rdma signals
XIO_RING_DEPTH=16 suite any 2 rdma signals

rules '^(parent|ring|controller|alloc|ionic)_'
posts 'kernels_post *yes'
posts "queues_by *library (the vendor's library .*libxio_vendor.so, not by system calls: .* has version 7 of its interface"
for name in get_ctx get_cq get_qp qp_get_udma_idx pd_set_sqcmb pd_set_rqcmb pd_set_udma_mask; do
  by_library "$(without "ionic_dv_$name")" \
    "kernels_post *no \\(RDMA device ionic_0: .*/libwithout.so has no call ionic_dv_$name; install the vendor's.*its driver has version 7.*A host thread posts for kernels"
done
expect no_pin 'RDMA device ionic_0 makes no completion queue: Bad address; the driver cannot pin'
expect old_firmware 'RDMA device ionic_0 makes no queue pair: .*; the NIC.s firmware is too old'
end
