#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, whose kernels drive queues of a simulated ConnectX through the true libmlx5.
# shellcheck source=tests/uverbs/queues.sh
. "${0%/*}/queues.sh" mlx5 || exit 1
suite any 2 rdma rma shapes atomics signals immediate sync
echo 'four queue pairs a peer'
XIO_RDMA_QUEUES=4 suite any 2 rdma rma signals
echo 'queue pairs at first use'
XIO_CONNECT=lazy suite any 3 rdma signals first_use
echo 'rings of 16 entries'
XIO_RING_DEPTH=16 suite any 2 rdma rma
taken=$(XIO_NIC_FAMILY=auto XIO_BACKEND=auto XIO_ROUTE=rdma XIO_LOG_LEVEL=info launch any 2 "$builddir/tests/mpi/signals" 2>&1)
if ! grep -q 'rdma: mlx5 on mlx5_0' <<<"$taken"; then
  echo "FAIL auto does not take queues that kernels drive:"
  printf '%s\n' "$taken" | tail -n 20
  failures=$((failures + 1))
fi
end
