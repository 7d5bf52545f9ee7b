#!/bin/bash
# SPDX-License-Identifier: MIT
# whole_programs.sh [PAGE...]: the c or hip block of each of these pages of docs/ is one whole program. It is built by
# the configured compiler, and run. Without names: all.
set -uo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${gpu:?}" "${sanitizer=}"

# expect PAGE: ./program prints, and leaves behind, what the page says.
expect() {
  case $1 in
    memory)
      ./program >printed || return
      cat printed
      grep -q '^DEVICE_FINE_GRAINED at 0x[0-9a-f]*: as asked $' printed && grep -q '^1 registration, 1 found again$' printed
      ;;
    sdma) ./program | grep -qx XIO_OK ;;
    storage) XIO_BOOTSTRAP=local ./program | grep -qx XIO_OK && [ "$(stat -c %s left.img)" = 524288 ] ;;
    *) echo "expect() does not know docs/$1.md" && return 1 ;;
  esac
}
wants_software_devices='sdma storage'

# All engines and families are what kernels have without a word, too; pkg-config would put them in.
read -ra flags <<<"$(sed -n '/^device_flags=/{s///;s/ -DXIO_[A-Z]*=[^ ]*//gp}' "$builddir/xio.pc") $(sed -n 's/^Cflags: [^ ]* //p' "$builddir/xio.pc")"
read -ra libs <<<"$(sed -n 's/^Libs: [^ ]* //p' "$builddir/xio.pc")"
sanitize=()
if [ "$sanitizer" != no ]; then sanitize=("-fsanitize=$sanitizer"); fi

# build LANGUAGE: program.LANGUAGE of this folder to ./program. A C program needs no C++ compiler to be linked.
build() {
  if [ "$1" = c ]; then
    # Word splitting is the point: CC may be two words.
    # shellcheck disable=SC2086
    $CC -std=c99 -Wall -Wextra -Wpedantic -Werror "${sanitize[@]}" -I"$srcdir/include" program.c -o program \
      -L"$builddir/.libs" -lxio -Wl,-rpath,"$builddir/.libs"
  else
    device_compile "${flags[@]}" "${sanitize[@]}" -I"$srcdir/include" -c program.hip -o program.o &&
      $CXX "${sanitize[@]}" program.o -o program -L"$builddir/.libs" "${libs[@]}" -Wl,-rpath,"$builddir/.libs"
  fi
}

if [ $# = 0 ]; then set -- memory sdma storage; fi
out=$(mktemp -d "$builddir/whole_programs.XXXXXX") || exit 1
trap 'rm -rf "$out"' EXIT
for page; do
  if [[ " $wants_software_devices " == *" $page "* ]] && ! has XIO_ENABLE_MODEL; then
    echo "not run: $page, for want of software devices"
    continue
  fi
  mkdir "$out/$page" && cd "$out/$page" || exit 1
  for language in c hip; do
    awk -v first="\`\`\`$language" '$0 == first {on = 1; next} /^```$/ {on = 0} on' "$srcdir/docs/$page.md" >"program.$language"
    if [ -s "program.$language" ]; then break; fi
  done
  if ! build "$language"; then
    fail "$page: does not build"
  elif [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then
    echo "ok   $page (built; no AMD GPU to run it)"
  elif expect "$page"; then
    echo "ok   $page"
  else
    fail "$page: the program does not do what the page says"
  fi
done
finish whole_programs
