#!/bin/bash
# SPDX-License-Identifier: MIT
# `make dist` packs what git has, file for file: the same names, contents and programs. Beside them are what autogen.sh makes
# and COMMIT, and raw results of benchmarks are left out.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

if [ ! -e "$srcdir/.git" ]; then skip "not a clone: nothing says what the tree holds"; fi
at=$(mktemp -d)
trap 'chmod -R u+w "$at"; rm -rf "$at"' EXIT
# A make of its own, not a part of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS
make -s -C "$builddir" distdir distdir="$at/packed" >"$at/log" 2>&1 || {
  tail -n 20 "$at/log"
  exit 1
}
made=(COMMIT Makefile.in aclocal.m4 config.h.in configure m4/{libtool,ltoptions,ltsugar,ltversion,lt~obsolete,pkg}.m4
  build-aux/{ar-lib,compile,config.guess,config.sub,depcomp,install-sh,ltmain.sh,missing,test-driver})
for file in "${made[@]}"; do
  if [ ! -s "$at/packed/$file" ]; then echo "FAIL no $file in what make dist packs" && exit 1; fi
  rm -f "$at/packed/$file"
done
# A file that was removed from the tree and not from git yet is in neither.
mkdir "$at/tree"
(cd "$srcdir" && git ls-files -z | grep -zvE '^(bench/results/|\.gitignore$)' |
  while IFS= read -rd '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
  tar --null -T - -cf -) | tar -C "$at/tree" -xf -

cd "$at"
programs() { (cd "$1" && find . -type f -perm -u+x | LC_ALL=C sort); }
if diff -rq --no-dereference tree packed && diff <(programs tree) <(programs packed); then
  echo "ok   $(find packed -type f | wc -l) files are packed as git has them"
else
  echo 'FAIL make dist does not pack what git has. Name a file that is only in tree in EXTRA_DIST, and give git what is only in'
  echo '     packed. A file that differs was taken from the build folder, which has a file or folder of that name.'
  exit 1
fi
