#!/bin/bash
# SPDX-License-Identifier: MIT
# The program in docs/storage.md is a whole one: built by the configured device compiler, and run.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
: "${srcdir:?}" "${builddir:?}" "${gpu:?}"

grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h" || skip 'storage over files needs the software devices'
out=$(mktemp -d "$builddir/storage_docs.XXXXXX")
trap 'rm -rf "$out"' EXIT
awk '/^```hip$/ {on = 1; next} /^```$/ {on = 0} on' "$srcdir/docs/storage.md" >"$out/program.hip"
test -s "$out/program.hip"
make -s -C "$builddir" -f - storage_docs <<MAKE
include Makefile
storage_docs:
	\$(DEVICE_COMPILER) \$(DEVICE_FLAGS) -std=c++20 \$(XIO_PLATFORM_CPPFLAGS) \$(GPU_CFLAGS) \$(CXXFLAGS) -I"$srcdir/include" -c "$out/program.hip" -o "$out/program.o"
	./libtool --silent --tag=CXX --mode=link \$(CXX) \$(CXXFLAGS) "$out/program.o" libxio.la \$(GPU_LIBS) -o "$out/program"
MAKE
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then skip "built; not run: no AMD GPU here"; fi
cd "$out"
XIO_BOOTSTRAP=local ./program | grep -qx XIO_OK
test "$(stat -c %s left.img)" = 524288
