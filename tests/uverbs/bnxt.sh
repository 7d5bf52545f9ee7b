#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, whose kernels drive queues of a simulated Thor2, made by the system calls of a simulated
# Linux 7.2; and how a kernel or NIC that cannot is named.
export XIO_TEST_UVERBS_NIC=bnxt
if [ -z "${XIO_TEST_UVERBS_SESSION-}" ]; then exec "${0%/*}/run" "$0"; fi
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/../mpi/run.sh" || exit 1
on_host_platform || skip 'the simulated device reaches host memory alone'
has HAVE_VERBS || skip 'this build is without libibverbs'
[ "$(uname -m)" = x86_64 ] || skip 'the simulated doorbell pages decode stores of x86-64'
export XIO_NIC_FAMILY=bnxt XIO_BACKEND=hw XIO_RDMA_ATOMIC32=emulate
# Atomics but two are loops of compare-and-swap here, each turn a message to the other process and back.
limit=250
export XIO_TIMEOUT_MS=${XIO_TIMEOUT_MS-200000}
suite any 2 rdma rma atomics signals immediate sync
echo 'four queue pairs a peer'
XIO_RDMA_QUEUES=4 suite any 2 rdma signals

# expect FAULTS TEXT: TEXT is an extended regular expression, found in the words of every PE.
expect() {
  local out status
  out=$(XIO_ROUTE=rdma XIO_LOG_LEVEL=error XIO_TEST_UVERBS_FAULTS=$1 launch any 2 timeout -k 5 60 "$builddir/tests/mpi/signals" 2>&1)
  status=$?
  if [ $status != 0 ] && [ $status != 124 ] && [ "$(grep 'xio_ctx_create' <<<"$out" | grep -cE "$2")" -ge 2 ]; then
    echo "ok   $1"
    return
  fi
  echo "FAIL $1: status $status, expected on every PE: $2"
  printf '%s\n' "$out" | sed 's/^/  /'
  failures=$((failures + 1))
}
expect old_kernel "RDMA device bnxt_re0: bnxt_re of Linux [0-9.]+.* has no doorbell pages for users"
expect no_fixed 'has no queue pairs of given sizes'
expect static_mode 'entries of variable size on this NIC'
expect no_pin 'RDMA device bnxt_re0 makes no completion queue: Bad address; the driver cannot pin'
expect port_down 'RDMA device bnxt_re0 port 1 is not up'
expect no_register 'RDMA device bnxt_re0 cannot register [0-9]+ bytes'
expect no_way 'bnxt_re0:1 .* does not go from INIT to RTR .*: Connection timed out; no way to the peer'
XIO_NIC_FAMILY=mlx5 expect none 'RDMA device bnxt_re0 has queues of bnxt'

# The administrator reads how kernels will post, and why not.
posts() {
  if "$builddir/xio-info" 2>&1 | grep -q "$1"; then return; fi
  echo "FAIL xio-info with faults '${XIO_TEST_UVERBS_FAULTS-}' does not say: $1"
  failures=$((failures + 1))
}
unset XIO_NIC_FAMILY XIO_BACKEND
posts 'kernels_post *yes (its driver makes queues in given memory'
posts 'port1_usable *yes'
XIO_TEST_UVERBS_FAULTS=old_kernel posts 'kernels_post *no (RDMA device bnxt_re0: bnxt_re of Linux .*want Linux 7.2 or newer'
end
