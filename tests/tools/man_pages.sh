#!/bin/bash
# SPDX-License-Identifier: MIT
# That every tool's page has every option of its --help, and that the pages are formatted without complaint.
set -uo pipefail
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}"
failures=0
checks=0
for page in "$srcdir"/man/*.1; do
  tool=$(basename "$page" .1)
  # As a reader sees it: roff's \- is a minus, \f changes the font.
  text=$(sed 's/\\-/-/g; s/\\f[A-Z]//g; s/["]//g' "$page")
  if [ -x "$builddir/$tool" ]; then
    while read -r flag; do
      checks=$((checks + 1))
      if ! grep -qE -- "(^|[ ,[(.])$flag([^a-z_-]|$)" <<<"$text"; then
        echo "FAIL $tool(1) says nothing of $flag"
        failures=$((failures + 1))
      fi
    done < <("$builddir/$tool" --help | grep -E '^ +-' | sed -E 's/^ +//; s/ .*//; s/:.*//' | tr ',' '\n')
  else
    echo "no $tool in this build: its options are not looked for"
  fi
  if command -v groff >/dev/null; then
    checks=$((checks + 1))
    complaint=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
    if [ -n "$complaint" ]; then
      echo "FAIL $complaint"
      failures=$((failures + 1))
    fi
  else
    echo "no groff: the form of $tool(1) is not looked at"
  fi
done
echo "$checks checks, $failures failures"
[ $failures = 0 ]
