#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs with NVIDIA's choices (XIO_HOST_AS_CUDA), on the host platform. Lanes write values side by
# side in waves of 32 lanes, too, and there with the host platform's own choices as well.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
XIO_NIC_FAMILY=mlx5 suite any 2 rdma {rma,shapes,signals,sync,litmus}_as_cuda
for family in mlx5 bnxt; do XIO_HOST_WAVE=32 XIO_NIC_FAMILY=$family suite any 2 rdma shapes shapes_as_cuda; done
suite any 2 sdma {rma,shapes,signals,sync,litmus}_as_cuda
end
