#!/bin/bash
# SPDX-License-Identifier: MIT
# source.sh FILE: the tests of one file below tests/, by the program that holds those of its folder, or by XIO_TEST_PROGRAM. A file that
# tests_in_threads names runs with GPU threads as fibers (whole waves post together) and as threads of the system; one
# that tests_in_both_waves names, with waves of 64 and 32 lanes.
set -eu
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
: "${builddir:?}" "${gpu:?}"
file=tests/${1##*tests/}
folder=${file%/*}
program=${XIO_TEST_PROGRAM-$builddir/$folder/${folder##*/}}

named_in() { case " $1 " in *" $file "*) ;; *) return 1 ;; esac; }
modes='' waves=''
# Under make -j such tests run beside each other, and beside no test that keeps several cores busy.
turn=-s
if named_in "${XIO_TEST_IN_THREADS-}"; then turn=-x; fi
if [ "$gpu" = host ] && named_in "${XIO_TEST_IN_THREADS-}"; then modes='fibers threads'; fi
if [ "$gpu" = host ] && named_in "${XIO_TEST_IN_BOTH_WAVES-}"; then waves='64 32'; fi
for wave in ${waves:-as_set}; do
  for mode in ${modes:-as_set}; do
    settings=()
    if [ "$wave" != as_set ]; then settings+=(XIO_HOST_WAVE="$wave"); fi
    if [ "$mode" != as_set ]; then settings+=(XIO_HOST_EXEC="$mode"); fi
    if [ ${#settings[@]} -gt 0 ]; then echo "== ${settings[*]}"; fi
    env "${settings[@]}" bash "${0%/*}/turn.sh" $turn "$program" --source="$file" --gtest_brief=1
  done
done
