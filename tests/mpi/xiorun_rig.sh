#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# What the tests of xiorun share: they start it, and keep what it wrote in $work/out and $work/err. Source it after env.sh.
xiorun=${builddir:?}/xiorun
make_work
: "${work:?}"

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
