#!/bin/bash
# SPDX-License-Identifier: MIT
# Worlds among real processes, by xiorun and by mpirun.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${MPIRUN=}" "${gpu:?}" "${sanitizer:?}"
world=$builddir/tests/mpi/world
xiorun=$builddir/xiorun
unset XIO_BOOTSTRAP XIO_HEAP_SIZE XIO_ROUTE
failures=0
ran=0

# expect STATUS COMMAND...
expect() {
  local status=$1 got
  shift
  ran=$((ran + 1))
  timeout -k 5 90 "$@" </dev/null
  got=$?
  if [ $got != "$status" ]; then
    echo "FAIL $*: status $got, expected $status"
    failures=$((failures + 1))
  fi
}

modes='life heap mismatch fork at_exit'
if has XIO_ENABLE_MODEL; then modes="$modes contexts"; fi
XIO_BOOTSTRAP=local expect 0 "$world" at_exit
if has HAVE_SODIUM; then
  for mode in $modes; do
    for n in 2 4; do expect 0 "$xiorun" -n $n "$world" "$mode"; done
  done
  export XIO_TIMEOUT_MS=3000
  expect 0 "$xiorun" --grace 20 -n 3 "$world" death_in_init
  expect 137 "$xiorun" --grace 20 -n 3 "$world" death
  unset XIO_TIMEOUT_MS
fi
# Without a thread, and with a program that may be run and not read.
alien=()
if [ "$(id -u)" = 0 ]; then alien=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
if has HAVE_SODIUM && has XIO_ENABLE_MODEL && [ "$gpu" = host ] && [ "$sanitizer" = no ]; then
  expect 0 "$xiorun" -n 2 "$world" no_thread
  closed=$(mktemp -d)
  cp "$world" "$closed/world"
  chmod 755 "$closed"
  chmod 111 "$closed/world"
  if "${alien[@]}" test -x "$xiorun" -a -r "$builddir/.libs/libxio.so"; then
    expect 0 "${alien[@]}" "$xiorun" -n 2 "$closed/world" not_readable
  fi
  rm -rf "$closed"
fi
if has HAVE_MPI && [ -n "$MPIRUN" ]; then
  export -f mpirun_np
  export MPIRUN
  for mode in $modes; do
    # shellcheck disable=SC2016
    for n in 2 4; do expect 0 bash -c 'mpirun_np "$@"' mpirun_np $n "$world" "$mode"; done
  done
fi

[ $ran = 0 ] && skip 'no launcher in this build'
[ $failures = 0 ] && echo 'world: all well'
exit $((failures != 0))
