#!/bin/bash
# SPDX-License-Identifier: MIT
# PEs die or are stopped in the middle of what they do, and the others exclude them and go on (xio/peers.h): by every
# route, NIC family and executor of the software NIC, PE 0 among the dead, all but two of them dead; a few cases, or with
# `all` 140. By hand, for one:
#   CASES=rdma:tcp:mlx5:5:quiet:0,3 tests/mpi/survivors.sh     direct|rdma|sdma|apart:EXECUTOR[/PROVIDER]:FAMILY:N:WHAT:PE,PE,...
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${builddir:?}" "${gpu:?}"
[ "$gpu" = host ] || skip 'PEs that share a GPU wait for its time slices'
unset XIO_NIC_FAMILY XIO_NIC_EXECUTOR

short='direct:auto:auto:3:put:0 direct:auto:auto:3:cont:1 rdma:shm:mlx5:5:quiet:0,3,4 rdma:tcp:mlx5:3:put:2
  rdma:shm:proxy:3:kill:0 sdma:auto:auto:3:put:1 apart:tcp:mlx5:3:put:1'
long=''
for what in put wait quiet stop cont kill; do
  for way in direct:auto:auto sdma:auto:auto rdma:shm:mlx5 rdma:tcp:mlx5; do
    long+=" $way:3:$what:0 $way:5:$what:1,2,4 $way:9:$what:0,2,3,5,6,7,8"
  done
  # Nobody can kill a process that is elsewhere.
  [ $what = kill ] || long+=" apart:tcp:mlx5:3:$what:0 apart:tcp:mlx5:5:$what:1,2,4"
  for family in bnxt ionic ernic proxy; do long+=" rdma:shm:$family:3:$what:1 rdma:tcp:$family:5:$what:0,2"; done
done

# Each as if on a machine of its own: no pidfd and no mapping. xiorun says that a PE is dead, and lets the others go on.
play_apart() {
  local n=$1 what=$2 dead=$3 out status
  # shellcheck disable=SC2016  # for the PE's shell
  out=$(timeout -k 5 "$limit" "$builddir/xiorun" --grace "$limit" -n "$n" sh -c 'XIO_MACHINE=m$XIO_RUN_PE exec "$@"' sh \
    "$builddir/tests/mpi/survivors" "$what" "$dead" 2>&1)
  status=$?
  printf '%s\n' "$out"
  local wanted=137
  if [ "$what" = cont ]; then wanted=0; fi
  [ $status = $wanted ] && all_live_well "$n" "$dead" "$out"
}

play_here() {
  start_by_tcp "$1" timeout -k 5 --foreground "$limit" "$builddir/tests/mpi/survivors" "$2" "$3"
  if [ "$2" = cont ]; then deaths_are_right ''; else deaths_are_right "$3"; fi
}

# play ROUTE N WHAT DEAD
play() { if [ "$1" = apart ]; then play_apart "${@:2}"; else play_here "${@:2}"; fi; }

one() {
  local route executor family n what dead out begin=$SECONDS
  IFS=: read -r route executor family n what dead <<<"$1"
  if [ "$route" != direct ] && ! has XIO_ENABLE_MODEL; then return; fi
  runs=$((runs + 1))
  if out=$(XIO_ROUTE=${route/apart/rdma} XIO_NIC_EXECUTOR=${executor%/*} XIO_FABRIC_PROVIDER=${executor#*/} XIO_NIC_FAMILY=$family play "$route" "$n" "$what" "$dead" 2>&1); then
    echo "ok   $1 ($((SECONDS - begin)) s)"
    return
  fi
  fail "$1" <(tail -n 40 <<<"$out")
}

[ "${1-}" = all ] || long=''
# shellcheck disable=SC2086  # lists
for case in ${CASES-$short $long}; do one "$case"; done
end
