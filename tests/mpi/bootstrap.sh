#!/bin/bash
# SPDX-License-Identifier: MIT
# The bootstraps among real processes: started by xiorun and mpirun, over TCP, MPI and UCX.
# shellcheck disable=SC2016,SC2317  # what PEs expand; functions that expect() calls
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${MPIRUN=}" "${work=}"
probe=$builddir/tests/mpi/bootstrap_probe
xiorun=$builddir/xiorun
make_work

# expect STATUS 'PATTERN ON STANDARD OUTPUT' COMMAND...
expect() {
  local status=$1 pattern=$2 got
  shift 2
  "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  if [ $got != "$status" ] || { [ -n "$pattern" ] && ! grep -qE -- "$pattern" "$work/out"; }; then
    fail "$* (XIO_BOOTSTRAP=$XIO_BOOTSTRAP): status $got, expected $status; output, expected /$pattern/:" "$work/out" "$work/err"
  fi
}
run() { local n=$1; shift; XIO_TEST_SIZE=$n timeout -k 5 60 "$xiorun" --grace 10 -n "$n" "$@"; }
mpi() { local n=$1; shift; XIO_TEST_SIZE=$n mpirun_np "$n" timeout -k 5 60 "$@"; }

unset XIO_BOOTSTRAP
for n in 1 2 8; do expect 0 '' run $n "$probe" worlds tcp; done
# Deadlines are long enough for programs to start on a machine that is busy.
export XIO_BOOTSTRAP=tcp XIO_TIMEOUT_MS=6000
expect 137 'XIO_ERR_PEER: rank 3 ' run 4 "$probe" death
expect 137 'XIO_ERR_PEER: rank 3 ' run 4 "$probe" death_in_cells
for how in silence silence_in_cells; do expect 3 'XIO_ERR_TIMEOUT: .* rank 2 ' run 3 "$probe" $how; done
expect 3 'XIO_ERR_STATE: rank 1 .* another kind of exchange 1 ' run 2 "$probe" other_kind
expect 3 'XIO_ERR_ARG: rank 1 .* gave 16 bytes' run 2 "$probe" mismatch
expect 3 'XIO_ERR_CONFIG: XIO_TCP_ROOT is not set' "$probe" worlds tcp
# Rank 0 with too few file descriptors says so at once; honest ranks are not dropped before; a soft limit is raised.
# Limits in between: of the worlds that the probe opens at once, the second does not fit, or has no listener.
# Descriptors that this script has inherited (make's, a runner's) would count among them.
for fd in /proc/self/fd/*; do
  fd=${fd##*/}
  if [ "$fd" -gt 2 ] && [ "$fd" -lt 255 ]; then eval "exec $fd>&-"; fi
done
export XIO_TIMEOUT_MS=50000 XIO_LOG_LEVEL=warn
limited() { XIO_TEST_SIZE=20 timeout -k 5 60 "$xiorun" --grace 0.3 -n 20 sh -c "ulimit $1; exec \"\$0\" worlds tcp" "$probe"; }
for n in 12 16 24 26; do
  SECONDS=0
  expect 3 'XIO_ERR_IO: rank 0 has no file descriptor left (for .* more of .* 20 ranks|to listen at ).*ulimit -n' limited "-n $n"
  if [ $SECONDS -gt 30 ] || grep dropped "$work/err"; then
    fail "$n file descriptors for 20 ranks took $SECONDS s or cost honest ranks their connection"
  fi
done
expect 0 '' limited '-S -n 16'
# Strangers give way: rank 1 brings eight of them, which stay silent, and rank 0 has room for fewer.
crowded() {
  XIO_TEST_SIZE=3 timeout -k 5 60 "$xiorun" --grace 0.3 -n 3 bash -c 'case $XIO_TCP_RANK in
    0) ulimit -n 12 ;;
    1) for _ in 1 2 3 4 5 6 7 8; do until { exec {fd}<>"/dev/tcp/${XIO_TCP_ROOT/://}"; } 2>/dev/null; do sleep 0.05; done; done ;;
    *) sleep 0.3 ;;
    esac
    exec "$0" worlds tcp' "$probe"
}
expect 0 '' crowded
unset XIO_TIMEOUT_MS XIO_LOG_LEVEL
# Under xiorun, a rank that has ended is not waited for, with any status; one whose program goes on behind it is.
gone() { XIO_TIMEOUT_MS=50000 timeout -k 5 60 "$xiorun" --grace 30 -n 3 sh -c "[ \$XIO_TCP_RANK != $1 ] || exit $2; exec $probe who"; }
for rank in 0 2; do
  for end in 0 5; do
    SECONDS=0
    expect $((end == 0 ? 3 : 5)) "XIO_ERR_PEER: rank $rank has ended with status $end" gone $rank $end
    [ $SECONDS -lt 40 ] || fail "rank $rank ended, and the others waited $SECONDS s"
  done
done
expect 0 '^rank 2 of 3 by tcp$' timeout -k 5 60 "$xiorun" -n 3 sh -c '[ $XIO_TCP_RANK != 1 ] || { (sleep 1; exec "$0" who) & exit 0; }
  exec "$0" who' "$probe"
# The port is PE 0's although a wrapper has closed all descriptors, or holds them.
expect 0 '^rank 0 of 2 by tcp$' timeout -k 5 60 "$xiorun" -n 2 bash -c 'exec 9</dev/null; sh -c "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; exec $0 who"; exit $?' "$probe"
if type -P python3 >"$work/python3"; then
  expect 0 '^rank 0 of 2 by tcp$' timeout -k 5 60 "$xiorun" -n 2 python3 -c \
    'import subprocess, sys; sys.exit(subprocess.run([sys.argv[1], "who"]).returncode)' "$probe"
fi
if has HAVE_UCX; then
  export XIO_BOOTSTRAP=ucx
  for n in 1 2 5; do expect 0 '' run $n "$probe" worlds ucx; done
  expect 3 'XIO_ERR_CONFIG: the UCX bootstrap has no way' "$probe" worlds ucx
  export XIO_TIMEOUT_MS=8000
  for how in death death_in_cells; do expect 137 'XIO_ERR_PEER: rank 2 is gone' run 3 "$probe" $how; done
  for how in silence silence_in_cells; do XIO_TIMEOUT_MS=6000 expect 3 'XIO_ERR_TIMEOUT: rank 2 ' run 3 "$probe" $how; done
  expect 3 'XIO_ERR_STATE: rank 1 is at another kind of exchange 1;' run 2 "$probe" other_kind
  expect 3 'XIO_ERR_ARG: rank [01] gave another number' run 2 "$probe" mismatch
  unset XIO_TIMEOUT_MS
fi

if has HAVE_MPI && [ -n "$MPIRUN" ]; then
  unset XIO_BOOTSTRAP
  for n in 2 4; do
    expect 0 '' mpi $n "$probe" worlds mpi
    expect 0 '' mpi $n "$probe" program_with_mpi
  done
  export XIO_BOOTSTRAP=mpi XIO_TIMEOUT_MS=6000
  for how in silence silence_in_cells; do expect 3 'XIO_ERR_TIMEOUT: rank 2 ' mpi 3 "$probe" $how; done
  expect 3 'XIO_ERR_STATE: rank 1 is at another kind of exchange 1;' mpi 2 "$probe" other_kind
  expect 3 'XIO_ERR_ARG: rank [01] gave another number' mpi 2 "$probe" mismatch
  expect 3 'XIO_ERR_CONFIG: the MPI bootstrap needs a launcher' "$probe" worlds mpi
  unset XIO_TIMEOUT_MS
  if has HAVE_UCX; then
    export XIO_BOOTSTRAP=ucx
    expect 0 '' mpi 2 "$probe" worlds ucx
  fi
fi

# A kind that this build lacks is refused, never replaced by another.
for kind in TCP:SODIUM MPI:MPI UCX:UCX; do
  if ! has "HAVE_${kind#*:}"; then
    name=$(echo "${kind%:*}" | tr '[:upper:]' '[:lower:]')
    XIO_BOOTSTRAP=$name expect 3 "XIO_ERR_UNSUPPORTED: this libxio has no ${kind%:*} bootstrap" "$probe" worlds "$name"
  fi
done

finish bootstrap
