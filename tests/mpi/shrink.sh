#!/bin/bash
# SPDX-License-Identifier: MIT
# PEs die in the middle of what they do, PE 0 among them, and the others agree on going on (xio_world_shrink): a few
# cases, and others that are drawn until KILLS PEs have died.
#   tests/mpi/shrink.sh [KILLS [SEED]]     44, 1
# By hand, for one:
#   CASES=direct:auto:5:malloc:0,3:tcp tests/mpi/shrink.sh     ROUTE:EXECUTOR:N:WHAT:PE,PE,...:tcp|id|xiorun|mpirun
# apart is as if each PE were on a machine of its own: no pidfd and no mapping.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${builddir:?}" "${gpu:?}"
[ "$gpu" = host ] || skip 'PEs that share a GPU wait for its time slices'
unset XIO_NIC_FAMILY XIO_NIC_EXECUTOR
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

short='direct:auto:3:host:0 direct:auto:5:malloc:0 direct:auto:5:shrink:0,1,3 rdma:shm:3:ctx:1 direct:auto:3:stop:0
  direct:auto:3:barrier:0,1 apart:tcp:3:put:0 direct:auto:3:some:1 direct:auto:3:late:2 direct:auto:2:without:1
  apart:tcp:6:host:1,2,3,4,5 direct:auto:3:host:0:xiorun direct:auto:3:malloc:0,2:mpirun direct:auto:3:team:2:id
  direct:auto:5:split:0 apart:tcp:4:split:1,2'
# drawn KILLS SEED
ns=(3 3 4 5 5 6 7 9 16) whats=(put barrier host malloc team split ctx shrink) bys=(tcp tcp id xiorun mpirun)
ways=(direct:auto direct:auto rdma:shm rdma:tcp apart:tcp)
drawn() {
  local kills=$1 n dead some pe way by
  RANDOM=$2
  while ((kills > 0)); do
    n=${ns[RANDOM % ${#ns[@]}]} way=${ways[RANDOM % ${#ways[@]}]} by=${bys[RANDOM % ${#bys[@]}]}
    some=$((1 + RANDOM % (n - 1))) dead=''
    ((kills -= some))
    for ((pe = 0; pe < n; ++pe)); do
      if ((RANDOM % (n - pe) < some)); then dead+=,$pe && ((--some)); fi
    done
    if [ "$way" = apart:tcp ]; then by=tcp; fi
    list+=" $way:$n:${whats[RANDOM % ${#whats[@]}]}:${dead#,}:$by"
  done
}
list=$short
drawn "${1-44}" "${2-1}"

# The launcher lets the others go on: those that live have nothing that failed, and its status is 0.
play_launched() {
  local by=$1 n=$2 what=$3 dead=$4 out status
  case $by in
    xiorun) out=$(timeout -k 5 "$limit" "$builddir/xiorun" --survive -n "$n" "$builddir/tests/mpi/shrink" "$what" "$dead" 2>&1) ;;
    mpirun) out=$(XIO_BOOTSTRAP=mpi mpirun_np "$n" --enable-recovery "$builddir/tests/mpi/shrink" "$what" "$dead" 2>&1) ;;
  esac
  status=$?
  printf '%s\n' "$out"
  [ $status = 0 ] && all_live_well "$n" "$dead" "$out"
}

play() {
  local route=$1 n=$2 what=$3 dead=$4 by=$5 apart=()
  case $by in
    xiorun | mpirun)
      play_launched "$by" "$n" "$what" "$dead"
      return
      ;;
    id) export SHRINK_ID=$work/id.$RANDOM$RANDOM ;;
    *) unset SHRINK_ID ;;
  esac
  # shellcheck disable=SC2016  # for the PE's shell
  if [ "$route" = apart ]; then apart=(sh -c 'XIO_MACHINE=machine$XIO_TCP_RANK exec "$@"' sh); fi
  start_by_tcp "$n" "${apart[@]}" timeout -k 5 --foreground "$limit" "$builddir/tests/mpi/shrink" "$what" "$dead"
  case $what in
    some | late | without | stop) deaths_are_right '' ;;
    *) deaths_are_right "$dead" ;;
  esac
}

one() {
  local route executor n what dead by out begin=$SECONDS
  IFS=: read -r route executor n what dead by <<<"$1"
  if [ "$by" = mpirun ] && ! { can_mpirun && "$MPIRUN" --version 2>&1 | grep -q 'Open MPI) 4'; }; then return; fi
  if [ "$route" != direct ] && ! has XIO_ENABLE_MODEL; then return; fi
  runs=$((runs + 1))
  if out=$(XIO_ROUTE=${route/apart/rdma} XIO_NIC_EXECUTOR=$executor play "$route" "$n" "$what" "$dead" "$by" 2>&1); then
    echo "ok   $1 ($((SECONDS - begin)) s)"
    return
  fi
  fail "$1" <(tail -n 60 <<<"$out")
}

# shellcheck disable=SC2086  # lists
for case in ${CASES-$list}; do one "$case"; done
end
