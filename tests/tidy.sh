#!/bin/bash
# SPDX-License-Identifier: MIT
# tidy.sh FLAGS FILE...: clang-tidy over files, from the build folder, as make lint calls it. A file that was clean before
# is not looked at again while it, all that it includes, the flags, the checks and the tools are the same. Clean files
# are kept by hash in ~/.cache/xio-tidy.
set -uo pipefail
flags=$1
shift
srcdir=$(cd "${0%/*}/.." && pwd)
kept=${XDG_CACHE_HOME:-$HOME/.cache}/xio-tidy
mkdir -p "$kept" 2>/dev/null
status=0
for file in "$@"; do
  # The contents alone: the same tree in another folder is as clean.
  # shellcheck disable=SC2086  # a list
  key=$({
    echo "$flags"
    clang-tidy --version
    cat "$srcdir/.clang-tidy"
    g++ -M $flags "$file" | sed 's/^[^ ]*: / /; s/\\$//' | xargs cat || date +%N
  } 2>/dev/null | sha256sum)
  key=$kept/${key%% *}
  if [ -e "$key" ]; then
    touch "$key"
    continue
  fi
  # shellcheck disable=SC2086  # a list
  if clang-tidy --quiet "$file" -- $flags 2>/dev/null; then : >"$key" 2>/dev/null; else status=1; fi
done
# Keys that were of no use for two months are removed.
find "$kept" -type f -mtime +60 -delete 2>/dev/null
exit $status
