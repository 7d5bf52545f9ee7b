# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# What scripts that try a tool share: they keep in $out what it printed, look into it, and count. Sourced first of all:
# env.sh comes by this, and a folder $work that goes with the script.
set -uo pipefail
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${gpu:?}" "${start:?}" "${sanitizer:?}" "${CC:?}"
make_work
: "${work:?}"
checks=0
out=''
# Without libtool's script in front of it, which takes four times as long as the program does to begin.
perf=$builddir/xio-perf
if [ -x "$builddir/.libs/xio-perf" ]; then
  perf=$builddir/.libs/xio-perf
  export LD_LIBRARY_PATH="$builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

wrong() {
  echo "FAIL $1"
  printf '%s\n' "$out" | head -n 40 | sed 's/^/  /'
  failures=$((failures + 1))
}
# Whether a line of $out has the extended regular expression. Mostly by the shell: grep is a process each time.
has_line() {
  local line
  while IFS= read -r line; do
    [[ $line =~ $1 ]]
    case $? in 0) return 0 ;; 2) grep -qE -- "$1" <<<"$out"; return ;; esac # 2: one that grep alone takes
  done <<<"$out"
  return 1
}
says() {
  checks=$((checks + 1))
  has_line "$1" || wrong "not said: $1"
}
says_all() {
  local each
  for each; do says "$each"; done
}
silent() {
  checks=$((checks + 1))
  ! has_line "$1" || wrong "said: $1"
}
# holds WHAT COMMAND...: the command succeeds; WHAT is what is wrong else.
holds() {
  checks=$((checks + 1))
  "${@:2}" || wrong "$1"
}
# is WHAT FOUND EXPECTED
is() {
  checks=$((checks + 1))
  [ "$2" = "$3" ] || wrong "$1: '$2' and not '$3'"
}
# returns STATUS COMMAND...: runs it, for $limit seconds at most; $out is all that it printed.
limit=120
returns() {
  local expected=$1 got
  shift
  out=$(timeout -k 5 "$limit" "$@" 2>&1)
  got=$?
  checks=$((checks + 1))
  [ "$got" = "$expected" ] || wrong "status $got and not $expected: $*"
}
# replies STATUS SENTENCE COMMAND...: the same, and it says the sentence.
replies() {
  returns "$1" "${@:3}"
  says "$2"
}
# Ends the script.
finish() {
  echo "$checks checks, $failures failed"
  exit $((failures != 0))
}
