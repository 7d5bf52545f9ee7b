#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs into an empty folder and builds two programs against that by pkg-config alone: what a user does.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

root=$builddir/tests/install/root
rm -rf "$root"
mkdir -p "$root"
# A make of its own, not a part of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS LDFLAGS
make -s -C "$builddir" install DESTDIR="$root" >"$root.log" 2>&1 || {
  tail -n 30 "$root.log"
  exit 1
}

# The folder plays the root of the file system: pkg-config puts it before every path.
pc=$(find "$root" -name xio.pc)
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$root
libdir=$(dirname "$(find "$root" -name libxio.so)")
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
sanitize=()
if [ "$sanitizer" != no ]; then sanitize=("-fsanitize=$sanitizer"); fi

# The program in README.md is a whole one.
awk '/^```cpp$/ {on = 1; next} /^```$/ {on = 0} on' "$srcdir/README.md" >"$root/readme.hip"

# Word splitting is the point: these are lists of flags.
# shellcheck disable=SC2046
{
  $CC -std=c99 -Wall -Wextra -Wpedantic -Werror "${sanitize[@]}" "$srcdir/tests/install/plain.c" -o "$root/plain" \
    $("$PKG_CONFIG" --cflags --libs xio)
  for program in "$srcdir/tests/install/hello" "$root/readme"; do
    name=${program##*/}
    $("$PKG_CONFIG" --variable=device_compiler xio) $("$PKG_CONFIG" --variable=device_flags xio) \
      $("$PKG_CONFIG" --cflags xio) -c "$program.hip" -o "$root/$name.o"
    $CXX "${sanitize[@]}" "$root/$name.o" -o "$root/$name" $("$PKG_CONFIG" --libs xio)
  done
}
"$root/plain"
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then
  echo "built; not run: no AMD GPU here"
else
  "$root/hello"
  "$builddir/xiorun" -n 2 "$root/readme"
fi

# Nothing of src/ may be needed, and every header of the device API stands on its own.
include=$(dirname "$(find "$root" -name xio.h)")/..
if [ "$gpu" = host ]; then
  find "$include/xio" -name '*.hpp' | while read -r header; do
    echo "#include \"$header\"" | $CXX -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I"$include" -x c++ -
  done
fi

# Only the C API, and on the host platform the HIP names and the executor that device code calls, are visible.
seen=$(nm -D --defined-only --demangle "$libdir/libxio.so" | awk '$2 ~ /[TDBR]/' | cut -d' ' -f3-)
strangers=$(grep -vE '^xio_|^xio::host_exec::|^xio::gpu_host::|^hip[A-Z]|^__threadfence|^wall_clock64\(' <<<"$seen" || true)
if [ -n "$strangers" ]; then
  echo "libxio.so shows symbols that it should hide:"
  echo "$strangers"
  exit 1
fi

# An uninstall leaves no file.
make -s -C "$builddir" uninstall DESTDIR="$root" >>"$root.log" 2>&1
left=$(find "$root" -mindepth 2 -type f -o -mindepth 2 -type l)
if [ -n "$left" ]; then
  echo "left behind by make uninstall:"
  echo "$left"
  exit 1
fi
rm -rf "$root" "$root.log"
