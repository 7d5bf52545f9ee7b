#!/bin/bash
# SPDX-License-Identifier: MIT
# turn.sh -x|-s|-w COMMAND...: the command when it is its turn, also under make -j: alone (-x); on a core beside others, as many as
# there are cores (-s); or beside these, because it mostly waits (-w). Its last line says what that took without the wait for
# the turn; `make check-times` adds the lines up.
set -u
turns=${XIO_TEST_TURNS:-$XIO_TEST_BUILDDIR/tests/turns}
take_core() {
  local core
  for ((core = $(nproc); core > 0; --core)); do
    exec 8>>"$turns.$core"
    if flock -n 8; then return 0; fi
  done
  return 1
}
if [ "$1" = -s ]; then until take_core; do sleep 0.1; done; fi
exec 9>>"$turns"
case $1 in -x) flock -x 9 ;; *) flock -s 9 ;; esac
TIMEFORMAT='test took %1R s, CPU %1U + %1S s'
# None of its children holds the turn.
time timeout -k 10 "${XIO_TEST_LIMIT:-600}" "${@:2}" 8>&- 9>&-
