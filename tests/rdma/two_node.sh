#!/bin/bash
# SPDX-License-Identifier: MIT
# XIO between two nodes that share nothing but a network: two namespaces joined by veth, the NIC model's ops carried by TCP.
# shellcheck disable=SC2317  # much is called by its name
# By hand:  CASES="mlx5:rma bnxt:litmus" tests/rdma/two_node.sh
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${sanitizer=}"
if ! has XIO_ENABLE_MODEL; then skip 'two nodes want the software NIC'; fi
# shellcheck source=tests/rdma/nodes.sh
. "$srcdir/tests/rdma/nodes.sh" || exit 1
: "${nodes_work:?}" "${address_a:?}"
if ! why=$(nodes_up); then skip "$why"; fi

export XIO_ROUTE=rdma XIO_NIC_EXECUTOR=tcp
programs='rma shapes atomics signals sync litmus args'
cases=${CASES-$("$srcdir/tests/leave_out" two_node {mlx5:{rma,shapes,atomics,signals,sync,litmus,args},{bnxt,proxy}:{rma,atomics,signals}})}
runs=0
log=$nodes_work/log
limit=60
case $sanitizer in '' | no) ;; *) limit=150 ;; esac

passed() {
  echo "ok   $1 ($((SECONDS - begin)) s)"
  runs=$((runs + 1))
}
failed() {
  echo "FAIL $1"
  tail -n 25 "$log".* 2>/dev/null | sed 's/^/  /'
  runs=$((runs + 1))
  failures=$((failures + 1))
}

# judge NAME COMMAND...
judge() {
  local name=$1
  shift
  begin=$SECONDS
  rm -f "$log".*
  if "$@"; then passed "$name"; else failed "$name: statuses ${status_a-} ${status_b-}"; fi
}

by_mpi() { mpi_pair timeout -k 5 "$limit" "$@" >"$log.mpi" 2>&1; }

suites() {
  local case program
  for case in $cases; do
    export XIO_NIC_FAMILY=${case%:*}
    judge "$case" pair "$log" timeout -k 5 "$limit" "$builddir/tests/mpi/${case#*:}"
  done
  unset XIO_NIC_FAMILY
  if ! has HAVE_MPI || ! mpi_can_pair; then
    echo 'not run: mpirun (this test knows Open MPI 4)'
    return
  fi
  for program in $programs; do judge "mpirun $program" by_mpi "$builddir/tests/mpi/$program"; done
}

# ---- loss ---------------------------------------------------------------------------------------------------------
# strike COMMAND...: starts lost_peer on both nodes, and strikes when data moves on both. The survivors' statuses must be 0: the
# program judges that every call came back in time.
strike() {
  local waited=0 pid_a pid_b name
  node_port=$((node_port + 1))
  export XIO_TIMEOUT_MS=2000
  start_pe a 0 "$log" timeout -k 5 60 "$builddir/tests/rdma/lost_peer"
  pid_a=$!
  start_pe b 1 "$log" timeout -k 5 60 "$builddir/tests/rdma/lost_peer"
  pid_b=$!
  unset XIO_TIMEOUT_MS
  for name in a b; do
    while ! grep -q '^moving' "$log.$name"; do
      if [ $((waited += 1)) -gt 200 ]; then break 2; fi
      sleep 0.1
    done
  done
  victim=
  "$@"
  status_a=0 status_b=0
  wait "$pid_a" 2>/dev/null || status_a=$?
  wait "$pid_b" 2>/dev/null || status_b=$?
  if [ "$victim" != a ] && [ "$status_a" != 0 ]; then return 1; fi
  if [ "$victim" != b ] && [ "$status_b" != 0 ]; then return 1; fi
}

# Sends the signal to the program itself, inside node $1.
kill_node() {
  local pids
  victim=$1
  mapfile -t pids < <(ip netns pids "$node_prefix-$1")
  kill "-$2" "${pids[@]}"
}

losses() {
  judge 'PE 1 killed in mid-transfer' strike kill_node b KILL
  judge 'PE 0 killed in mid-transfer' strike kill_node a KILL
  judge 'link cut and left cut' strike cut_link
  mend_link
  judge 'the link again' pair "$log" timeout -k 5 "$limit" "$builddir/tests/mpi/signals"
}

# ---- a long way ---------------------------------------------------------------------------------------------------
# 1 GiB with CRCs while frames are lost, doubled, late and out of order (docs/faults.md): the NIC makes all of it good.
soak() {
  export XIO_MODEL_FAULTS=$1
  judge "soak, $1" pair "$log" timeout -k 5 150 "$builddir/tests/rdma/soak"
  unset XIO_MODEL_FAULTS
}

suites
losses
soak drop=0.001,dup=0.001,reorder=0.001,delay=0.001:1ms
finish "two_node, $runs runs"
