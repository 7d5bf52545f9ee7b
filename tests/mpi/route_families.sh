#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs by route rdma in the format of every NIC family, on the software NIC: all of it once, tiny
# rings across the wraps of every counter, and several queue pairs over several NICs. Tests of rings of any kind and
# not of a format (crowd, timeout) are in route_rdma.sh. Where PEs share a GPU all of it would take an hour and a half: there
# each family has the words that it writes for values, signals and atomics, across one wrap. tests/leave_out leaves out
# what knows no format.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}" "${srcdir:?}"
# shellcheck disable=SC2086  # a list
programs=$("$srcdir/tests/leave_out" route_families ${all% crowd timeout})
# Three PEs, or as many as have a GPU of their own.
pes=3
if crowded 3; then pes=2; fi
tickets='65528 4294967288 1099511627768' # 2^16, 2^32 and 2^40 entries are near.
wrapping='rma atomics signals'
if crowded 2; then tickets=4294967288 wrapping='atomics signals'; fi
for family in ${FAMILIES-mlx5_cq mlx5_nodbr bnxt ionic ionic_v1 ernic proxy}; do
  echo "family $family"
  export XIO_NIC_FAMILY=$family
  if ! crowded 2; then
    # shellcheck disable=SC2086  # a list
    suite any 2 rdma $programs
    XIO_RDMA_QUEUES=4 XIO_MODEL_NICS=2 suite any $pes rdma rma signals litmus
  fi
  # shellcheck disable=SC2086  # a list
  for ticket in $tickets; do
    XIO_RING_DEPTH=8 XIO_TICKET_START=$ticket suite any 2 rdma $wrapping
  done
done
unset XIO_NIC_FAMILY
# The proxy's entries by libfabric: sockets promises every order, tcp leaves writes and atomics to be ordered here. `few` of PROVIDERS
# is what a short run has; check-long takes 5 PEs and the rest.
can_libfabric() { has HAVE_LIBFABRIC && ldconfig -p | grep -q 'libfabric\.so\.1'; }
if can_libfabric && ! crowded 2; then
  for provider in ${PROVIDERS-sockets tcp}; do
    echo "libfabric, provider $provider"
    export XIO_NIC_EXECUTOR=libfabric XIO_FABRIC_PROVIDER=$provider
    # shellcheck disable=SC2086  # a list
    suite any 2 rdma ${FABRIC_PROGRAMS-rma atomics signals immediate}
    # shellcheck disable=SC2086
    suite any 3 rdma ${FABRIC_PROGRAMS-litmus}
    # shellcheck disable=SC2086
    [ -z "${FABRIC_PROGRAMS-}" ] || suite any 5 rdma $FABRIC_PROGRAMS
  done
  unset XIO_NIC_EXECUTOR XIO_FABRIC_PROVIDER
fi
end
