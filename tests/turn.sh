#!/bin/bash
# SPDX-License-Identifier: MIT
# turn.sh -s|-x COMMAND...: the command when it is its turn, alone (-x) or beside others that have -s, also under make -j. Its
# last line says what that took without the wait for the turn; `make check-times` adds the lines up.
set -u
exec 9>>"${XIO_TEST_TURNS:-$XIO_TEST_BUILDDIR/tests/turns}"
flock "$1" 9
TIMEFORMAT='test took %1R s, CPU %1U + %1S s'
# None of its children holds the turn.
time timeout -k 10 "${XIO_TEST_LIMIT:-600}" "${@:2}" 9>&-
