#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, whose kernels drive queues of a simulated ConnectX through the true libmlx5.
if [ -z "${XIO_TEST_UVERBS_SESSION-}" ]; then exec "${0%/*}/run" "$0"; fi
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/../mpi/run.sh" || exit 1
on_host_platform || skip 'the simulated device reaches host memory alone'
has HAVE_MLX5DV || skip 'this build is without libmlx5'
export XIO_NIC_FAMILY=mlx5 XIO_BACKEND=hw XIO_RDMA_ATOMIC32=emulate
# 4-byte atomics are loops here, each turn a message to the other process and back.
limit=250
export XIO_TIMEOUT_MS=${XIO_TIMEOUT_MS-200000}
suite any 2 rdma rma shapes atomics signals immediate sync
echo 'four queue pairs a peer'
XIO_RDMA_QUEUES=4 suite any 2 rdma rma signals
echo 'rings of 16 entries'
XIO_RING_DEPTH=16 suite any 2 rdma rma
taken=$(XIO_NIC_FAMILY=auto XIO_BACKEND=auto XIO_ROUTE=rdma XIO_LOG_LEVEL=info launch any 2 "$builddir/tests/mpi/signals" 2>&1)
if ! grep -q 'rdma: mlx5 on mlx5_0' <<<"$taken"; then
  echo "FAIL auto does not take queues that kernels drive:"
  printf '%s\n' "$taken" | tail -n 20
  failures=$((failures + 1))
fi
end
