#!/bin/bash
# SPDX-License-Identifier: MIT
# nvcc 12.4 and 13.0: where a function takes a ctx by value and is inlined late, they may read the kernel's argument as if
# it lay in the thread's local memory. Looks for that in the PTX of all programs with kernels that are here.
#   tests/device/nvcc.sh [PROGRAM...]
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${gpu:?}" "${failures:?}"
[ "$gpu" = cuda ] || skip 'kernels are not compiled by nvcc here'
command -v cuobjdump >/dev/null || skip 'no cuobjdump, of the CUDA toolkit'
if [ $# = 0 ]; then set -- "$builddir"/tests/mpi/*.o "$builddir"/examples/*.o "$builddir"/src/tools/xio-*/*.o; fi
seen=0
for program in "$@"; do
  cuobjdump -ptx "$program" 2>/dev/null | awk -v program="$program" '
    /[.](entry|func) / { name = $0; delete argument }
    /cvta[.]param/ { sub(",", "", $2); argument[$2] = 1 }
    /cvta[.]to[.]local/ { sub(";", "", $3); if ($3 in argument) { print "FAIL " program ": an argument of" name; bad = 1 } }
    { ++lines }
    END { exit bad ? 1 : lines == 0 ? 2 : 0 }'
  case $? in 0) ((++seen)) ;; 1) ((++seen, ++failures)) ;; esac
done
[ "$seen" -gt 0 ] || fail "no PTX in $*"
finish nvcc
