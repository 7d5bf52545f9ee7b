#!/bin/bash
# SPDX-License-Identifier: MIT
# names.sh [LIBRARY]: libxio shows the functions that the public headers declare, all of them and nothing else. On the host
# platform those that <xio/hip.h> and device code call are there too, by names that no HIP has.
set -euo pipefail
export LC_ALL=C # as sort and comm order names
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

library=${1:-$builddir/.libs/libxio.so}
api=("$srcdir"/include/xio/{host,xio,internal,memory,peers,sdma,status,stream,team}.h)
host=("$srcdir"/include/xio/hip_host.h "$srcdir"/include/xio/device/platform/host_exec.hpp)
make_work
for header in "$srcdir"/include/xio/*.h; do
  case " ${api[*]} ${host[*]} $srcdir/include/xio/export.h " in *" $header "*) continue ;; esac
  if grep -q XIO_EXPORT "$header"; then
    echo "FAIL $header declares functions of libxio, and this test does not know it"
    exit 1
  fi
done

# A function's name stands before its first parenthesis.
{
  cat "${api[@]}" | tr '\n' ' ' | grep -oE 'XIO_EXPORT [^(;]*\(' | sed -E 's/.*[ *]([a-z_0-9]+)\($/\1/'
  if [ "$gpu" = host ]; then grep -hoE 'XIO_HOST_SYMBOL\([A-Za-z_0-9]+\)( *;|$)' "${host[@]}" | sed -E 's/.*\((.*)\).*/xio_host_\1/'; fi
} | sort >"$work/declared"
nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sort >"$work/shown"
sed 's/@.*//' "$work/shown" >"$work/names"

failed=0
complain() {
  if [ -z "$2" ]; then return; fi
  echo "FAIL $1:"
  echo "$2"
  failed=1
}
complain 'declared twice' "$(uniq -d "$work/declared")"
complain "$library shows what no public header declares" "$(comm -13 "$work/declared" "$work/names")"
complain "$library lacks what a public header declares" "$(comm -23 "$work/declared" "$work/names")"
series=$(sed -n 's/^\(XIO_.*\) {$/\1/p' "$builddir/libxio.map")
complain "not of the series $series" "$(grep -v "@@$series\$" "$work/shown" || true)"
if [ "$(grep -cv '^xio_host_' "$work/declared")" -lt 48 ]; then complain 'too few to be the API' "$(cat "$work/declared")"; fi
if [ "$failed" = 0 ]; then echo "ok   $(wc -l <"$work/declared") functions, all $series"; fi
exit "$failed"
