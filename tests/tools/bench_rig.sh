# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# What the tests of bench/'s scripts share: programs that only pretend to measure stand in $at, and what a script wrote is in
# $at/out and $at/err. Source it after env.sh.
make_work
at=${work:?}
# A line of xio-perf's CSV: row TEST SCOPE BYTES MICROSECONDS, after its head.
head='test,op,scope,bytes,ctas,threads,iterations,samples,min_us,median_us,p99_us'
row() { echo "$1,,$2,$3,1,1,5,5,0.1,$4,9"; }
# refuses 'ARGUMENTS' SENTENCE: run, of the test, fails with this among its words.
refuses() {
  # shellcheck disable=SC2086  # words
  if run $1; then fail "'$1' was taken"; fi
  grep -q -- "$2" "$at/err" || fail "'$1' was refused with other words than '$2': $(cat "$at/err")"
}
