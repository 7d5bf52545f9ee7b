#!/bin/bash
# SPDX-License-Identifier: MIT
# Buffers of ops that have timed out, used again once their ctx was destroyed or recovered, or their storage closed.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${start:?}"
has XIO_ENABLE_MODEL || skip 'slow software devices are not in this build'
on_host_platform || skip 'stopping a process stops the kernels of its GPU on the host platform only'
file=$(mktemp)
trap 'rm -f "$file"' EXIT
head -c 1048576 /dev/urandom >"$file"

# try WHAT PES MODE VARIABLE=VALUE...
try() {
  local what=$1 pes=$2 mode=$3 limit=1500 out start_at=$SECONDS
  # There PEs wait for the one that looks.
  case $mode in recover*) limit=8000 ;; esac
  shift 3
  # shellcheck disable=SC2086  # a mode and its argument
  if out=$(env XIO_TIMEOUT_MS="$limit" XIO_LOG_LEVEL=error "$@" "$start" -n "$pes" timeout -k 5 100 "$builddir/tests/mpi/late" $mode 2>&1) &&
    grep -q "^late .* checks, 0 failed" <<<"$out"; then
    echo "ok   $what, $mode ($((SECONDS - start_at)) s)"
  else
    fail "$what, $mode" <(tail -n 30 <<<"$out")
  fi
}

# An op comes after a vote without its peer has ended, and before the program looks for the last time.
# Nothing is given up for lack of an acknowledgement before kernels give up.
for mode in destroy recover; do
  try 'a peer that is stopped' 2 $mode XIO_ROUTE=rdma XIO_NIC_EXECUTOR=tcp XIO_NIC_TCP_ACK_MS=60000
done
for pes in 3 4; do
  try "a peer of $pes that is stopped" $pes recover XIO_ROUTE=rdma XIO_NIC_EXECUTOR=tcp XIO_NIC_TCP_ACK_MS=60000
done
for mode in 'destroy cold' 'recover cold'; do
  try 'a slow NIC' 2 "$mode" XIO_ROUTE=rdma XIO_NIC_EXECUTOR=shm XIO_MODEL_FAULTS=delay=1:2500ms/pe0/queue1
  try 'a slow copy engine' 2 "$mode" XIO_ROUTE=sdma XIO_MODEL_FAULTS=sdma_delay@0=2500ms
done
slow=delay=1:2500ms/pe1/queue0
try 'the slow NIC of a peer' 2 put XIO_ROUTE=rdma XIO_NIC_EXECUTOR=shm XIO_MODEL_FAULTS=$slow
# Requests wait where the peer's NIC has them, or come again.
try 'the slow NIC of a peer' 2 put XIO_ROUTE=rdma XIO_NIC_EXECUTOR=tcp XIO_MODEL_FAULTS=$slow
truncate -s 64M "$file"
try 'a busy drive' 1 "unregister file:$file" XIO_NVME_MDTS=8M
try 'a slow drive' 1 "storage file:$file" XIO_MODEL_FAULTS=nvme_delay=1:2s
finish late
