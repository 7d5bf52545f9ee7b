#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# What the tests of xiorun share: they start it, keep what it wrote in $work/out and $work/err, and count failures. Source
# it after env.sh.
xiorun=${builddir:?}/xiorun
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# fail WHAT [FILE...]: counts a failure, and shows the files.
fail() {
  echo "FAIL $1"
  shift
  if [ $# != 0 ]; then sed 's/^/  /' "$@"; fi
  failures=$((failures + 1))
}
# expect NAME STATUS 'PATTERN ON STANDARD ERROR' COMMAND...
expect() {
  local name=$1 status=$2 pattern=$3 got
  shift 3
  timeout -k 5 60 "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  if [ $got = "$status" ] && { [ -z "$pattern" ] || grep -qE -- "$pattern" "$work/err"; }; then return; fi
  fail "$name: status $got, expected $status; standard error, expected /$pattern/:" "$work/err"
}
# expect_none_left MARKER NAME: no process may still run that was started with this marker in its arguments.
expect_none_left() {
  local left
  left=$(pgrep -f "$1" | grep -vx $$)
  if [ -n "$left" ]; then fail "$2: processes left behind: $left"; fi
}
# finish NAME: the exit status of the whole test
finish() {
  [ $failures = 0 ] && echo "$1: all well"
  exit $((failures != 0))
}
