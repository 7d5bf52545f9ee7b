# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# What scripts that try a tool share: they keep in $out what it printed, look into it, and count. Source it after env.sh.
checks=0
failures=0

wrong() {
  echo "FAIL $1"
  printf '%s\n' "$out" | head -n 40 | sed 's/^/  /'
  failures=$((failures + 1))
}
says() {
  checks=$((checks + 1))
  grep -qE -- "$1" <<<"$out" || wrong "not said: $1"
}
