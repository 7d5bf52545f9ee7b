#!/bin/bash
# SPDX-License-Identifier: MIT
# What README and docs show works. Of the fenced blocks
#   cpp          with main() is built, and run by two PEs; without, all of a page are compiled together
#   sh           is run in an empty folder where build/, examples/ and README.md are at hand
#   c and hip    are whole programs, for tests/docs/whole_programs.sh
#   python       for python/tests/test_docs.py, which runs it by two PEs
#   console text are no code: they cannot run here, or are what something prints
# and nothing else is allowed. Files that a page names are there, and so is what it links to.
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${start:?}" "${gpu:?}" "${PKG_CONFIG=}"
out=$builddir/tests/docs/blocks
rm -rf "$out"
mkdir -p "$out" || exit 1
ok() { echo "ok   $1"; }
cd "$srcdir" || exit 1
pages=(README.md CONTRIBUTING.md docs/*.md)
name() { local n=${1##*/}; echo "${n%.md}"; }

# Each block in a file of its own: PAGE.LINE.LANGUAGE
for page in "${pages[@]}"; do
  awk -v stem="$out/$(name "$page")" '
    /^ *```/ && !on {sub(/^ *```/, ""); sub(/[[:space:]].*/, ""); on = 1; file = stem "." FNR "." ($0 == "" ? "none" : $0); printf "" >file; next}
    /^ *```/ {on = 0; close(file); next}
    on {print >file}' "$page"
done

languages() {
  local block
  for block in "$out"/*; do
    case $block in
      *.cpp | *.sh | *.text | *.console | *.python) ;;
      *.c | *.hip)
        local page=${block##*/}
        page=${page%%.*}
        if ! grep -q "^    $page)" tests/docs/whole_programs.sh; then fail "docs/$page.md: a block of ${block##*.}, and not known to tests/docs/whole_programs.sh"; fi
        ;;
      *) fail "${block##*/}: a block must be cpp, sh, c, hip, python, console or text" ;;
    esac
  done
}

# ---- cpp ---------------------------------------------------------------------------------------------------------
# All engines and families are what kernels have without a word, too; pkg-config would put them in.
read -ra flags <<<"$(sed -n '/^device_flags=/{s///;s/ -DXIO_[A-Z]*=[^ ]*//gp}' "$builddir/xio.pc") $(sed -n 's/^Cflags: [^ ]* //p' "$builddir/xio.pc")"
sanitize=()
if [ "$sanitizer" != no ]; then sanitize=("-fsanitize=$sanitizer"); fi
read -ra libs <<<"$(sed -n 's/^Libs: [^ ]* //p' "$builddir/xio.pc")"
compile() { device_compile "${flags[@]}" -O0 -Wall -Wextra -Werror -Iinclude -c "$1" -o "$2"; }

programs() {
  local block page
  for block in "$out"/*.cpp; do
    if [ -e "$block" ] && grep -q '^int main' "$block"; then
      if ! { compile "$block" "$block.o" &&
        $CXX "${sanitize[@]}" "$block.o" -o "$block.run" -L"$builddir/.libs" "${libs[@]}" -Wl,-rpath,"$builddir/.libs"; }; then
        fail "${block##*/} does not build" && continue
      fi
      if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then ok "${block##*/} (built; no AMD GPU to run it)" && continue; fi
      if timeout -k 5 100 "$start" -n 2 "$block.run"; then ok "${block##*/}"; else fail "${block##*/} by two PEs: status $?"; fi
    fi
  done
  for page in "${pages[@]}"; do
    page=$(name "$page")
    local parts=()
    for block in "$out/$page".*.cpp; do
      if [ -e "$block" ] && ! grep -q '^int main' "$block"; then parts+=("$block"); fi
    done
    if [ ${#parts[@]} = 0 ]; then continue; fi
    {
      printf '#include <cstdio>\n#include "xio/hip.h"\n#include "xio/memory.h"\n#include "xio/stream.h"\n#include "xio/xio_device.hpp"\n'
      for block in "${parts[@]}"; do
        printf 'namespace block_%s {\n#line 1 "%s"\n' "$(tr -dc 0-9 <<<"${block##*/}")" "${block##*/}"
        cat "$block"
        echo '}'
      done
    } >"$out/$page.parts.hip"
    if compile "$out/$page.parts.hip" "$out/$page.parts.o"; then ok "$page: ${#parts[@]} pieces compile"; else fail "$page: a piece does not compile"; fi
  done
}

# ---- sh ----------------------------------------------------------------------------------------------------------
commands() {
  local block
  for block in "$out"/*.sh; do
    [ -e "$block" ] || continue
    if grep -q mpirun "$block" && ! can_mpirun; then
      echo "not run: ${block##*/}, for want of MPI" && continue
    fi
    if ! grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h"; then
      echo "not run: ${block##*/}, for want of software devices" && continue
    fi
    mkdir "$block.in"
    ln -s "$builddir" "$block.in/build"
    ln -s "$srcdir/examples" "$srcdir/README.md" "$block.in"
    {
      printf '. %q\n' "$builddir/tests/env.sh"
      # shellcheck disable=SC2016  # for the block
      echo 'mpirun() { mpirun_np "$2" "${@:3}"; }'
      # shellcheck disable=SC2016  # likewise
      cat "$block"
    } >"$block.whole"
    if (cd "$block.in" && timeout -k 5 100 bash -eu -o pipefail "$block.whole") >"$block.log" 2>&1; then
      ok "${block##*/}"
    else
      fail "${block##*/}: status $?"
      tail -n 20 "$block.log"
    fi
  done
}

# ---- names and links ---------------------------------------------------------------------------------------------
# A path of the tree that a page names is in the tree or comes out of the build.
named() {
  local page path
  for page in README.md CONTRIBUTING.md docs/*.md; do
    while read -r path; do
      path=${path%[.,:]}
      # A release has no raw results.
      if [[ $path == bench/results* && ! -e bench/results ]]; then continue; fi
      # NAME stands for any; what starts with such a name may be one of several files.
      if [[ $path == *NAME* || -e $path || -e $builddir/$path ]] || compgen -G "$path*" >/dev/null; then continue; fi
      if ! grep -qF "$path\$(EXEEXT)" "$builddir/Makefile"; then fail "$page names $path, which is not there"; fi
    done < <(grep -oE '(^|[^A-Za-z0-9_./-])(src|include|tests|examples|bench|docs|kernel|m4|cmake|debian)/[A-Za-z0-9_./-]+' "$page" | sed -E 's/^[^A-Za-z]//' | sort -u)
  done
}

links() {
  local page target
  for page in "${pages[@]}"; do
    while read -r target; do
      case $target in http*://* | '#'*) continue ;; esac
      if [ ! -e "$(dirname "$page")/${target%%#*}" ]; then fail "$page links to $target, which is not there"; fi
    done < <(grep -oE '\]\([^) ]+\)' "$page" | sed 's/^](//; s/)$//' | sort -u)
  done
}

languages
programs
commands
named
links
if [ $failures = 0 ]; then rm -rf "$out"; fi
finish blocks
