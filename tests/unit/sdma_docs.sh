#!/bin/bash
# SPDX-License-Identifier: MIT
# The program in docs/sdma.md is a whole one: built by the configured device compiler, and run.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
: "${builddir:?}" "${gpu:?}" "${sanitizer=}"

out=$builddir/tests/unit/sdma_docs
awk '/^```hip$/ {on = 1; next} /^```$/ {on = 0} on' "$srcdir/docs/sdma.md" >"$out.hip"
test -s "$out.hip"
make -s -C "$builddir" -f - sdma_docs <<MAKE
include Makefile
sdma_docs:
	\$(DEVICE_COMPILER) \$(DEVICE_FLAGS) -std=c++20 \$(XIO_PLATFORM_CPPFLAGS) \$(GPU_CFLAGS) \$(CXXFLAGS) -I"$srcdir/include" -c "$out.hip" -o "$out.o"
	./libtool --silent --tag=CXX --mode=link \$(CXX) \$(CXXFLAGS) "$out.o" libxio.la \$(GPU_LIBS) -o "$out"
MAKE
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then skip "built; not run: no AMD GPU here"; fi
"$out" | grep -qx XIO_OK
