#!/bin/bash
# SPDX-License-Identifier: MIT
# Every test of the programs that hold a folder's tests is in a file that make check starts; one in a header, or in a file
# that is compiled and not listed, would never run.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
: "${builddir:?}"
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS
make_work
# shellcheck disable=SC2016  # for make
listed=" $(printf 'include Makefile\nlisted:\n\t@echo $(unit_tests) $(model_tests)\n' |
  make -s --no-print-directory -C "$builddir" -f - listed) "
files=0
for program in tests/unit/unit tests/model/model; do
  if [ ! -x "$builddir/$program" ]; then continue; fi
  "$builddir/$program" --gtest_list_tests --gtest_output="json:$work/tests.json" >/dev/null
  while read -r file; do
    files=$((files + 1))
    case $listed in
      *" $file "*) ;;
      *)
        fail "$program has tests of $file, which make check does not start"
        ;;
    esac
  done < <(sed 's,\\/,/,g' "$work/tests.json" | sed -n 's,^ *"file": ".*\(tests/[^"]*\)".*,\1,p' | sort -u)
done
echo "$files files, $failures failed"
[ "$failures" = 0 ] && [ "$files" -gt 0 ]
