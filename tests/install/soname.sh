#!/bin/bash
# SPDX-License-Identifier: MIT
# The SONAME says for which platform libxio was built and which binary interface it has, and a program that was linked with
# -lxio asks for that one. A program of another series does not start.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

library=$builddir/.libs/libxio.so
series=$(sed -n 's/^\(XIO_.*\) {$/\1/p' "$builddir/libxio.map")
expected=libxio-$gpu.so.0
got=$(objdump -p "$library" | awk '$1 == "SONAME" {print $2}')
if [ "$got" != "$expected" ]; then echo "FAIL the SONAME is '$got' and not '$expected'" && exit 1; fi
make_work
echo '#include <xio/xio.h>
int main(void) { return xio_my_pe(0) == -1 ? 0 : 1; }' >"$work/program.c"
"$CC" -I"$srcdir/include" "$work/program.c" -o "$work/program" -L"$builddir/.libs" -lxio -Wl,--allow-shlib-undefined
needed=$(objdump -p "$work/program" | awk '$1 == "NEEDED" {print $2}')
if ! grep -qx "$expected" <<<"$needed"; then echo "FAIL a program does not ask for $expected: $needed" && exit 1; fi
echo "ok   SONAME $got"

# Another series: the same SONAME, another node.
mkdir "$work/other"
echo 'int xio_my_pe(const void* world) { (void)world; return -1; }' >"$work/other.c"
echo 'XIO_0.0 { global: xio_*; local: *; };' >"$work/other.map"
"$CC" -shared -fPIC "$work/other.c" -o "$work/other/$expected" -Wl,-soname,"$expected" -Wl,--version-script="$work/other.map"
if LD_LIBRARY_PATH=$work/other "$work/program" 2>"$work/said"; then
  echo 'FAIL a program runs with the libxio of another series'
  exit 1
fi
if ! grep -q "$series.* not found" "$work/said"; then echo 'FAIL the reason is another:' && cat "$work/said" && exit 1; fi
echo 'ok   a program of another series does not start'
