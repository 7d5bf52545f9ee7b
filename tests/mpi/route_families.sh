#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs by route rdma in the format of every NIC family, on the software NIC: all of it once, tiny
# rings across the wraps of every counter, and several queue pairs over several NICs. What looks at rings of any kind and
# not at a format (crowd, timeout) is in route_rdma.sh.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}"
# Three PEs, or as many as have a GPU of their own.
pes=3
if crowded 3; then pes=2; fi
for family in ${FAMILIES-mlx5_cq mlx5_nodbr bnxt ionic ionic_v1 ernic proxy}; do
  echo "family $family"
  export XIO_NIC_FAMILY=$family
  # shellcheck disable=SC2086  # a list
  suite any 2 rdma ${all% crowd timeout}
  # 2^16, 2^32 and 2^40 entries are near.
  for ticket in 65528 4294967288 1099511627768; do
    XIO_RING_DEPTH=8 XIO_TICKET_START=$ticket suite any 2 rdma rma atomics signals
  done
  XIO_RDMA_QUEUES=4 XIO_MODEL_NICS=2 suite any $pes rdma rma signals litmus
done
unset XIO_NIC_FAMILY
end
