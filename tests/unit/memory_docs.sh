#!/bin/bash
# SPDX-License-Identifier: MIT
# The program in docs/memory.md is a whole one: built as C by the configured compiler, and run.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

out=$builddir/tests/unit/memory_docs
mkdir -p "${out%/*}"
awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' "$srcdir/docs/memory.md" >"$out.c"
test -s "$out.c"
sanitize=()
if [ "$sanitizer" != no ]; then sanitize=("-fsanitize=$sanitizer"); fi
# Word splitting is the point: CC may be two words.
# shellcheck disable=SC2086
$CC -std=c99 -Wall -Wextra -Wpedantic -Werror "${sanitize[@]}" -I"$srcdir/include" "$out.c" -o "$out" \
  -L"$builddir/.libs" -lxio -Wl,-rpath,"$builddir/.libs"
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then skip "built; not run: no AMD GPU here"; fi
"$out" | tee "$out.txt"
grep -q '^DEVICE_FINE_GRAINED at 0x[0-9a-f]*: as asked $' "$out.txt"
grep -q '^1 registration, 1 found again$' "$out.txt"
