#!/bin/bash
# SPDX-License-Identifier: MIT
# docs/calls.md has a row for each call of the public headers, with the callers and the header that they say. After a change of
# the headers:
#   XIO_TEST_BUILDDIR=build tests/docs/calls.sh --update
# The last column is kept by the call's name; a new call has a question mark there, which is to be replaced.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
: "${srcdir:?}"
page=$srcdir/docs/calls.md
make_work

# A call begins a line; names behind xio::dev are the inside, and hip*.h are HIP's names.
declared() {
  local header name
  for header in include/xio/{xio,status,memory,team,peers,mpi,sdma,stream,host}.h include/xio/device/*.hpp; do
    name=${header#include/xio/}
    sed -nE "s,^(XIO_EXPORT|XIO_DEVICE|XIO_HOST_DEVICE|XIO_TEAM_FUNCTION|static inline) .*[ *](xio_[a-z0-9_]+)\(.*,\1 \2 ${name#device/},p" <(awk -f "$srcdir/docs/headers.awk" "$header")
  done | sed 's/^static inline/XIO_EXPORT/'
}

# Forms of a call are one row: scopes behind _wave and _wg, posting behind _nbi.
table() {
  awk '
    FNR == NR {
      if (split($0, cell, / \| /) == 4 && cell[1] ~ /^\| `xio_/) { gsub(/[|` ]/, "", cell[1]); kept[cell[1]] = cell[4] }
      next
    }
    {
      call = $2
      scope = "thread"
      if ($1 == "XIO_DEVICE") {
        if (call ~ /_wg_/) scope = "wg"
        if (sub(/_wave$/, "", call)) scope = "wave"
        if (sub(/_wg$/, "", call)) scope = "wg"
        if (sub(/_nbi$/, "", call)) posts[call] = 1
        on[call, scope] = 1
      } else {
        on[call, "host"] = 1
        if ($1 != "XIO_EXPORT") on[call, "thread"] = 1
      }
      if (!(call in header)) { header[call] = $3; order[++n] = call } else if (index(header[call], $3) == 0) header[call] = header[call] ", " $3
    }
    END {
      for (i = 1; i <= n; ++i) {
        call = order[i]
        who = ""
        for (s = 1; s <= split("host thread wave wg", scopes, " "); ++s)
          if (on[call, scopes[s]]) who = who (who == "" ? "" : ", ") scopes[s]
        printf "| `%s` | %s | %s | %s\n", call, who (posts[call] ? "; nbi" : ""), header[call], call in kept ? kept[call] : "? |"
      }
    }' "$page" - | LC_ALL=C sort -t'`' -k2,2
}

cd "$srcdir"
{
  sed '/^| `xio_/,$d' "$page"
  declared | table
} >"$work/page"
if [ "${1-}" = --update ]; then
  cp "$work/page" "$page"
elif ! diff -u "$page" "$work/page"; then
  echo 'FAIL docs/calls.md is not what the headers declare; tests/docs/calls.sh --update writes it anew'
  exit 1
fi
if grep -nE '^\| `xio_.*\| \? \|' "$page"; then echo 'FAIL docs/calls.md: say what completes these calls' && exit 1; fi
rows=$(grep -c '^| `xio_' "$page")
echo "$rows calls"
[ "$rows" -gt 150 ]
