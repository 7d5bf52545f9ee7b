#!/bin/bash
# SPDX-License-Identifier: MIT
# That bash completes every option of every tool's --help, the words of its lists, and the names that options take.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
# shellcheck source=completion/xio-tools.bash
. "$srcdir/completion/xio-tools.bash" || exit 1
# shellcheck source=tests/tools/helps.sh
. "$srcdir/tests/tools/helps.sh" || exit 1
PATH=$builddir:$PATH

# completes WORDS... EXPECTED: the last word but one is what was typed so far.
completes() {
  local expected=${!#} command
  COMP_WORDS=("${@:1:$#-1}")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  command=_xio_tool
  if [ "$1" = xiorun ]; then command=_xio_run; fi
  COMPREPLY=()
  $command "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  checks=$((checks + 1))
  case " ${COMPREPLY[*]} " in
    *" $expected "*) ;;
    *)
      echo "FAIL '${COMP_WORDS[*]}' gives '${COMPREPLY[*]}' and not '$expected'"
      failures=$((failures + 1))
      ;;
  esac
}

for tool in xio-info xio-tester xio-perf xio-verify xiorun; do
  if ! command -v "$tool" >/dev/null; then
    echo "no $tool in this build"
    continue
  fi
  found=0
  while read -r -a words; do
    if [ ${#words[@]} -gt 1 ]; then completes "${words[@]:0:${#words[@]}-1}" "${words[-1]:0:${#words[-1]}-1}" "${words[-1]}"; fi
    while read -r flag; do
      completes "${words[@]}" "${flag:0:${#flag}-1}" "$flag"
      found=$((found + 1))
    done < <(flags_of "${words[@]}")
  done < <(commands_of "$tool")
  if [ $found -lt 4 ]; then
    echo "FAIL only $found options in the help of $tool"
    failures=$((failures + 1))
  fi
  checks=$((checks + 1))
  complete -p "$tool" >/dev/null || failures=$((failures + 1))
done

if command -v xio-perf >/dev/null; then
  completes xio-perf put_l put_lat
  completes xio-perf put_lat --bidir sdma_c sdma_copy
  completes xio-perf put_lat --route d direct
  completes xio-perf put_lat -s wa wave
  completes xio-perf put_lat -s thread,bl thread,block
  completes xio-perf --format '' json
  completes xiorun -n 2 xio-perf --form --format
  completes xiorun -n 2 xio-perf put_lat --rou --route
fi
completes xiorun -n 2 bas bash
completes xiorun --tag-output --time --timeout

finish
