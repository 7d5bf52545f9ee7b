#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the device API's programs between PEs. By hand, for one combination:
#   LAUNCH=any|mpirun|xiorun|tcp N=2 ROUTE=direct|rdma|sdma PROGRAMS="rma litmus" LIMIT=120 tests/mpi/run.sh
# any is what this build has. Without LAUNCH: all that `make check` wants of the set named by the script that calls this one.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${start:?}" "${sanitizer=}" "${failures:?}"
all='rma shapes atomics signals immediate sync teams collectives stream extremes gone litmus stale workgroups args allpairs storm crowd timeout'
# Of these by software devices where PEs share a GPU. Scripts that source this use it.
# shellcheck disable=SC2034
few='rma signals sync allpairs'
runs=0

# A tool that looks at every access takes its time.
limit=${LIMIT-120}  # seconds for a program
case $sanitizer in '' | no) ;; *) limit=250 ;; esac
# There each step of a software NIC waits for a time slice, and thousands that are posted at once have one deadline.
if crowded 2; then
  limit=250
  export XIO_TIMEOUT_MS=${XIO_TIMEOUT_MS-200000}
fi

# start_by_tcp N COMMAND...: PEs that nobody ends when another one dies, their processes in pids.
pids=()
start_by_tcp() {
  local n=$1 port=$((20000 + RANDOM % 20000)) rank
  shift
  pids=()
  for ((rank = 0; rank < n; ++rank)); do
    XIO_BOOTSTRAP=tcp XIO_TCP_ROOT=127.0.0.1:$port XIO_TCP_RANK=$rank XIO_TCP_SIZE=$n \
      XIO_TCP_KEY='a key for one test run' "$@" &
    pids+=($!)
  done
}

tcp() {
  local pid status=0
  start_by_tcp "$@"
  for pid in "${pids[@]}"; do wait "$pid" || status=$?; done
  return $status
}

# deaths_are_right DEAD: each of pids ends well, and those among PE,PE,... by SIGKILL.
deaths_are_right() {
  local rank status bad=0
  for rank in "${!pids[@]}"; do
    wait "${pids[rank]}"
    status=$?
    case ,$1, in *,$rank,*) status=$((status == 137 ? 0 : status + 1000)) ;; esac
    [ $status = 0 ] || { echo "PE $rank: status $status"; bad=1; }
  done
  return $bad
}

# all_live_well N DEAD OUTPUT: so many PEs but for PE,PE,... say that nothing failed.
all_live_well() { [ "$(grep -c ' 0 failed$' <<<"$3")" = $(($1 - $(tr -cd , <<<"$2," | wc -c))) ]; }

launch() {
  case $1 in
    any) "$start" -n "${@:2}" ;;
    mpirun) mpirun_np "${@:2}" ;;
    xiorun) "$builddir/xiorun" -n "${@:2}" ;;
    tcp) tcp "${@:2}" ;;
    *) echo "LAUNCH=$1 is not any, mpirun, xiorun or tcp" >&2; return 2 ;;
  esac
}

can_launch() {
  case $1 in
    any | tcp | xiorun) true ;;
    mpirun) can_mpirun ;;
  esac
}

# suite LAUNCH N ROUTE PROGRAM..., each with its arguments
suite() {
  local how=$1 n=$2 route=$3 program words out begin run_here
  shift 3
  if ! can_launch "$how"; then
    echo "not run: $how is not in this build"
    return
  fi
  if [ "$route" != direct ] && [ "$route" != auto ] && ! has XIO_ENABLE_MODEL; then
    echo "not run: route $route needs the software devices"
    return
  fi
  mapfile -t run_here < <("$srcdir/tests/leave_out" "$(basename "$0" .sh):$how:$n" "$@")
  for program in "${run_here[@]}"; do
    begin=$SECONDS
    read -ra words <<<"$program"
    if out=$(XIO_ROUTE=$route launch "$how" "$n" timeout -k 5 "$limit" "$builddir/tests/mpi/${words[0]}" "${words[@]:1}" 2>&1); then
      echo "ok   $how -n $n $route $program ($((SECONDS - begin)) s)"
    else
      fail "$how -n $n $route $program: status $?" <(tail -n 40 <<<"$out")
    fi
    runs=$((runs + 1))
  done
}

end() {
  if [ $runs = 0 ]; then skip 'nothing of this can run here'; fi
  echo "$runs runs, $failures failed"
  exit $((failures != 0))
}

if [ -n "${LAUNCH-}" ] || [ "${0##*/}" = run.sh ]; then
  for route in ${ROUTE-direct rdma sdma}; do
    # shellcheck disable=SC2086  # a list
    suite "${LAUNCH-any}" "${N-2}" "$route" ${PROGRAMS-$all}
  done
  end
fi
