# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tools say of themselves, for the scripts that compare it with completion and manual pages. Source it.

# flags_of COMMAND...: every option in its --help, one a line; all names of an option that has several.
flags_of() { "$@" --help | grep -E '^ +-' | sed -E 's/^ +//; s/ .*//; s/:.*//' | tr ',' '\n'; }

# commands_of TOOL...: it and its subcommands and theirs, one a line.
commands_of() {
  local sub
  echo "$*"
  "$@" --help | awk '/^Subcommands:/ {on = 1; next} on && /^  [a-z]/ {print $1; next} {on = 0}' | while read -r sub; do
    commands_of "$@" "$sub"
  done
}
