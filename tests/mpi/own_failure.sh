#!/bin/bash
# SPDX-License-Identifier: MIT
# Waits see the failures of their own ctx's queues: NICs of every family, and a drive that loses a command. Calls on a stream
# end when a PE dies before them, or in the middle of replays of a graph.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
make_work
export XIO_MODEL_FAULTS=error@3=remote_access/pe0
for family in mlx5 bnxt ionic ernic proxy; do
  export XIO_NIC_FAMILY=$family
  echo "family $family"
  suite any 2 rdma 'own_failure rdma'
done
unset XIO_NIC_FAMILY
export XIO_MODEL_FAULTS=nvme_lose@0
suite any 2 direct "own_failure nvme ${work:?}"
unset XIO_MODEL_FAULTS
for route in direct rdma sdma; do suite xiorun 3 $route 'stream dead' 'stream dies'; done
end
