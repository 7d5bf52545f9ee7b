#!/bin/bash
# SPDX-License-Identifier: MIT
# What the tree holds, `make dist` packs: tests look for files that pages name, also where no git is.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

if ! git -C "$srcdir" rev-parse --is-inside-work-tree >/dev/null 2>&1; then skip "not a clone: nothing says what the tree holds"; fi
at=$(mktemp -d)
trap 'chmod -R u+w "$at"; rm -rf "$at"' EXIT
# A make of its own, not a part of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS
make -s -C "$builddir" distdir distdir="$at/packed" >"$at/log" 2>&1 || {
  tail -n 20 "$at/log"
  exit 1
}
missing=0
while read -r file; do
  case $file in .gitignore) continue ;; esac
  if [ ! -e "$srcdir/$file" ] || [ -e "$at/packed/$file" ]; then continue; fi
  echo "FAIL $file is in the tree, and not in what make dist packs; name it in EXTRA_DIST"
  missing=$((missing + 1))
done < <(git -C "$srcdir" ls-files)
if [ "$missing" = 0 ]; then echo "ok   all files of the tree are packed"; fi
[ "$missing" = 0 ]
