# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by drive.sh and amdgpu.sh: steps that must pass, and refusals that must be made. `inside` is the command that
# a program is run by, an array; work is a folder that goes at the end.
work=$(mktemp -d) || exit 125
trap 'rm -rf "$work"' EXIT
failed=0
# must NAME COMMAND...
must() {
  local begin=$EPOCHREALTIME
  if timeout 90 "${@:2}" >"$work/out" 2>&1; then
    echo "ok   $1 ($(awk "BEGIN {printf \"%.1f\", $EPOCHREALTIME - $begin}") s)"
  else
    echo "FAIL $1"
    tail -n 10 "$work/out" | sed 's/^/  /'
    failed=$((failed + 1))
  fi
}
# says TEXT NAME COMMAND...: it must pass, and say that.
says() {
  must "${@:2}"
  if ! grep -q -- "$1" "$work/out"; then
    echo "FAIL $2: nothing like '$1'"
    tail -n 5 "$work/out" | sed 's/^/  /'
    failed=$((failed + 1))
  fi
}
# refuses TEXT VARIABLE=VALUE COMMAND...: opening the drive is refused with that sentence.
refuses() { says "refused.*$1" "$2" env "$2" "${@:3}"; }
