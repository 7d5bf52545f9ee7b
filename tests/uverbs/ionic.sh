#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, whose kernels drive queues of a simulated Pollara, made by the system calls of a simulated
# Linux 6.18; and how a kernel or NIC that cannot is named.
export XIO_TEST_UVERBS_NIC=ionic
if [ -z "${XIO_TEST_UVERBS_SESSION-}" ]; then exec "${0%/*}/run" "$0"; fi
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/../mpi/run.sh" || exit 1
on_host_platform || skip 'the simulated device reaches host memory alone'
has HAVE_VERBS || skip 'this build is without libibverbs'
[ "$(uname -m)" = x86_64 ] || skip 'the simulated doorbell pages decode stores of x86-64'
export XIO_NIC_FAMILY=ionic XIO_BACKEND=hw XIO_RDMA_ATOMIC32=emulate
# Atomics but two are loops of compare-and-swap here, each turn a message to the other process and back.
limit=250
export XIO_TIMEOUT_MS=${XIO_TIMEOUT_MS-200000}
suite any 2 rdma rma atomics signals immediate sync
echo 'four queue pairs a peer'
XIO_RDMA_QUEUES=4 suite any 2 rdma signals
echo 'rings of a page, which are the smallest'
XIO_RING_DEPTH=16 suite any 2 rdma signals
echo 'interface 1'
XIO_TEST_UVERBS_FAULTS=interface1 suite any 2 rdma signals

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
expect old_kernel 'RDMA device ionic_0: the ionic driver of Linux [0-9.]+.* has no completion queues by system calls'
expect no_rdma 'has no RDMA on this NIC.s firmware'
expect old_firmware 'RDMA device ionic_0 makes no queue pair: .*; the NIC.s firmware is too old'
expect no_pin 'RDMA device ionic_0 makes no completion queue: Bad address; the driver cannot pin'
expect port_down 'RDMA device ionic_0 port 1 is not up'
expect no_register 'RDMA device ionic_0 cannot register [0-9]+ bytes'
expect no_way 'ionic_0:1 .* does not go from INIT to RTR .*: Connection timed out; no way to the peer'
XIO_NIC_FAMILY=bnxt expect none 'RDMA device ionic_0 has queues of ionic'
XIO_RING_DEPTH=32768 expect none 'a queue depth of 32768 is not possible on RDMA device ionic_0 port 1, .*; set XIO_RING_DEPTH'
XIO_MEMORY_MODE=7 expect none 'pins rings by address'

# The administrator reads how kernels will post, and why not.
posts() {
  if "$builddir/xio-info" 2>&1 | grep -q "$1"; then return; fi
  echo "FAIL xio-info with faults '${XIO_TEST_UVERBS_FAULTS-}' does not say: $1"
  failures=$((failures + 1))
}
unset XIO_NIC_FAMILY XIO_BACKEND
posts 'kernels_post *yes (its driver makes queues in given memory'
posts 'port1_usable *yes'
XIO_TEST_UVERBS_FAULTS=old_kernel posts 'kernels_post *no (RDMA device ionic_0: the ionic driver of Linux .*want ionic_rdma of Linux 6.18'
# As a kernel before 6.18 shows the NIC: by its Ethernet driver alone.
function=$XIO_TEST_UVERBS_SESSION/sys/bus/pci/devices/0000:81:00.0
mkdir -p "$function"
echo 0x1dd8 >"$function/vendor"
echo 0x020000 >"$function/class"
posts 'kernels_post *no (Linux .* has made no RDMA device of it: load ionic_rdma (Linux 6.18 or newer)'
out=$(XIO_TEST_UVERBS_ABI=4 "${0%/*}/run" "$builddir/xio-info" 2>&1)
if ! grep -q "kernels_post *no (RDMA device ionic_0: its driver has version 4 of its interface" <<<"$out"; then
  echo 'FAIL xio-info does not say that the driver has another interface'
  failures=$((failures + 1))
fi
end
