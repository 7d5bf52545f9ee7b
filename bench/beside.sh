# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# Sourced by the scripts of this folder: how they refuse what they cannot use. $here is this folder.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# refuse STATUS SENTENCE
refuse() {
  echo "${0##*/}: $2" >&2
  exit "$1"
}
# want_numbers WORD...
want_numbers() {
  local word
  for word in "$@"; do
    case $word in '' | *[!0-9]* | 0*) refuse 2 "'$word' is no number from 1 up" ;; esac
  done
}
# want_program FILE CURE: of this build
want_program() { [ -x "$1" ] || refuse 1 "$1 is missing: $2"; }
# want_command NAME CURE: of the system
want_command() { command -v "$1" >/dev/null || refuse 1 "needs $1 ($2)"; }
# must FOLDER/NAME COMMAND...: what it prints goes to FOLDER/NAME.csv; a failure ends the script with its last words.
must() {
  "${@:2}" >"$1.csv" 2>"$1.err" || {
    echo "${0##*/}: ${*:2} failed:" >&2
    tail -n 5 "$1.err" >&2
    exit 1
  }
  rm -f "$1.err"
}
# columns NAME: "NAME TEST SCOPE BYTES MICROSECONDS" of CSVs by xio-perf on standard input. Columns there: test, op, scope,
# bytes, ..., the tenth is the median.
columns() { awk -F, -v name="$1" '$1 != "test" && NF > 10 {print name, $1 ($2 == "" ? "" : "_" $2), $3, $4, $10}'; }
# cells NAME...: these columns of such CSVs, row by row. Only cells behind them have commas in quotes.
cells() {
  awk -F, -v names="$*" 'NR == 1 {n = split(names, wanted, " "); for (i = 1; i <= NF; ++i) at[$i] = i}
    $1 != "test" {for (i = 1; i <= n; ++i) printf "%s%s", $at[wanted[i]], i < n ? " " : "\n"}'
}
