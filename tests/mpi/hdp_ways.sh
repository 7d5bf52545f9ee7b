#!/bin/bash
# SPDX-License-Identifier: MIT
# Waits, signals and gets between PEs with every way to flush the host data path, by every route.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
# shellcheck disable=SC2154  # from env.sh
if [ "$gpu" = cuda ]; then skip 'kernels for NVIDIA GPUs flush nothing: these have no host data path'; fi
has XIO_ENABLE_MODEL && ways='device host readback sdma rdma-read' || ways='device host readback'
for way in $ways; do
  for route in direct rdma sdma; do
    echo "== XIO_HDP=$way"
    (export XIO_HDP=$way; suite any 2 $route signals; [ $route != rdma ] || suite any 2 $route immediate
     exit $((failures != 0))) || failures=$((failures + 1))
    runs=$((runs + 1))
  done
done
end
