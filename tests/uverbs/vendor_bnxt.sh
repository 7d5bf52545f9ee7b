#!/bin/bash
# SPDX-License-Identifier: MIT
# A Thor2 whose driver is Broadcom's own: queues that kernels drive are made by libbnxt_re, for which a library of ours
# stands in (sim/uverbs/vendor). The same programs as by system calls, what is said where it makes none, and its rules.
export XIO_TEST_UVERBS_VENDOR=1
# shellcheck source=tests/uverbs/queues.sh
. "${0%/*}/queues.sh" bnxt || exit 1
: "${start:?}" "${library:?}"
suite any 2 rdma rma atomics signals immediate sync
XIO_RDMA_QUEUES=4 suite any 2 rdma signals

rules "^(umem|cq|qp|page|modify|object)_"
posts 'kernels_post *yes'
posts "queues_by *library (the vendor's library .*libxio_vendor.so, not by system calls: .* has version 7 of its interface"
by_library 1 'kernels_post *yes' XIO_TEST_UVERBS_ABI=9
by_library 1 'makes no completion queue: Bad address; .* \(by .*libxio_vendor.so\)\. .*: its driver has version 9 .*Linux.s own has 1' \
  XIO_TEST_UVERBS_ABI=9 XIO_TEST_UVERBS_FAULTS=no_pin
names=(umem_reg umem_dereg create_cq destroy_cq create_qp destroy_qp modify_qp init_obj get_default_db_region)
for name in "${names[@]}"; do
  by_library "$(without "bnxt_re_dv_$name")" \
    "kernels_post *no \(RDMA device bnxt_re0: .*/libwithout.so has no call bnxt_re_dv_$name; install the vendor's.*its driver has version 7.*A host thread posts for kernels"
done
# As rdma-core's own has them.
by_library "$(without "${names[@]/#/bnxt_re_dv_}")" 'has no call bnxt_re_dv_umem_reg'
# Where it lends no page, queue pairs share the context's.
if ! env -u LD_PRELOAD XIO_TEST_UVERBS_VENDOR="$(without bnxt_re_dv_alloc_db_region)" XIO_ROUTE=rdma "${0%/*}/run" \
  "$start" -n 2 timeout -k 5 60 "$builddir/tests/mpi/signals"; then
  fail 'queue pairs on one page'
fi
# Another part of the process has loaded another copy, which has all calls.
cp "$library" "$XIO_TEST_UVERBS_SESSION/libbnxt_re.so"
by_library "$(without bnxt_re_dv_modify_qp)" \
  'libibverbs has loaded .*/libwithout.so, and bnxt_re_dv_modify_qp is of another copy, .*/libbnxt_re.so; install one' \
  LD_LIBRARY_PATH="$XIO_TEST_UVERBS_SESSION" LD_PRELOAD="$XIO_TEST_UVERBS_SESSION/libbnxt_re.so"
expect no_pin 'RDMA device bnxt_re0 makes no completion queue: Bad address; the driver cannot pin'
end
