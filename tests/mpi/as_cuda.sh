#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs with NVIDIA's choices (XIO_HOST_AS_CUDA), on the host platform. One family of NICs and the
# copy engines run all programs, the other families those that write a family's format. Lanes write values side by side
# in waves of 32 lanes, too, and there with the host platform's own choices as well.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${builddir:?}"
XIO_NIC_FAMILY=mlx5 suite any 2 rdma {rma,shapes,atomics,signals,immediate,sync,litmus}_as_cuda
XIO_NIC_FAMILY=bnxt suite any 2 rdma {rma,shapes,atomics,signals,immediate}_as_cuda
for family in ionic ernic proxy; do XIO_NIC_FAMILY=$family suite any 2 rdma {rma,atomics,signals}_as_cuda; done
for family in mlx5 bnxt; do XIO_HOST_WAVE=32 XIO_NIC_FAMILY=$family suite any 2 rdma shapes shapes_as_cuda; done
suite any 2 sdma {rma,shapes,signals,sync,litmus}_as_cuda
# Whole waves on one queue of each family, in small rings as well.
if has HAVE_GTEST; then
  runs=$((runs + 1))
  "$builddir/tests/model/as_cuda" --gtest_brief=1 || failures=$((failures + 1))
fi
end
