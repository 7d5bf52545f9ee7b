#!/bin/bash
# SPDX-License-Identifier: MIT
# turn.sh -x|-s|-w COMMAND...: the command when it is its turn, also under make -j: alone (-x); on a core beside others, as many as
# there are cores (-s); or beside these, because it mostly waits (-w). Its last line says what that took without the wait for
# the turn; `make check-times` adds the lines up.
set -u
turns=${XIO_TEST_TURNS:-$XIO_TEST_BUILDDIR/tests/turns}
# One looks for a free core, and those behind it wait in the kernel: to look takes a process each time.
take_core() {
  local core cores
  cores=$(nproc)
  exec 7>>"$turns.next"
  flock -x 7
  for ((core = cores; ; core = core > 1 ? core - 1 : cores)); do
    exec 8>>"$turns.$core"
    if flock -w 0.2 8; then break; fi
  done
  exec 7>&-
}
if [ "$1" = -s ]; then take_core; fi
exec 9>>"$turns"
case $1 in -x) flock -x 9 ;; *) flock -s 9 ;; esac
TIMEFORMAT='test took %1R s, CPU %1U + %1S s'
# None of its children holds the turn.
time timeout -k 10 "${XIO_TEST_LIMIT:-600}" "${@:2}" 8>&- 9>&-
