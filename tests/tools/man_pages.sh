#!/bin/bash
# SPDX-License-Identifier: MIT
# That every tool's page has every option of its --help, of its subcommands too, and no option that there is not, and that
# the pages are formatted without complaint.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
# shellcheck source=tests/tools/helps.sh
. "$srcdir/tests/tools/helps.sh" || exit 1
PATH=$builddir:$PATH

# As a reader sees it: roff's \- is a minus, \f changes the font.
read_page() { sed 's/\\-/-/g; s/\\f[A-Z]//g; s/["]//g' "$1"; }

# section NAME: of the page on standard input.
section() { awk -v name="$1" '/^\.SH/ {on = substr($0, 5) == name} on'; }

# names FLAG: whether the text on standard input has it as a word.
names() { grep -qE -- "(^|[ ,[(.])$1([^a-z_-]|$)"; }

# look COMMAND TEXT: a subcommand's options stand in the section that bears its name, --help anywhere.
look() {
  local command=$1 text=$2 flag own=$2 where
  local -a words
  read -ra words <<<"$command"
  if [ ${#words[@]} -gt 1 ]; then own=$(section "${words[1]^^}" <<<"$text"); fi
  while read -r flag; do
    checks=$((checks + 1))
    case $flag in -h | --help) where=$text ;; *) where=$own ;; esac
    names "$flag" <<<"$where" || fail "${words[0]}(1) says nothing of $command $flag"
  done < <(flags_of "${words[@]}")
}

# look_back TOOL TEXT FLAGS: what a page puts in front of a paragraph is an option that the tool has.
look_back() {
  local flag
  while read -r flag; do
    checks=$((checks + 1))
    grep -qxF -- "$flag" <<<"$3" || fail "$1(1) tells of $flag, which $1 does not know"
  done < <(awk '/^\.TP/ {getline; print}' <<<"$2" | grep -oE -- '(^|[ ,])--?[a-zA-Z][a-z_-]*' | tr -d ' ,' | sort -u)
}

for page in "$srcdir"/man/*.1; do
  tool=$(basename "$page" .1)
  text=$(read_page "$page")
  if [ -x "$builddir/$tool" ]; then
    flags=
    while read -r command; do
      look "$command" "$text"
      # shellcheck disable=SC2086  # a command's words
      flags+=$'\n'$(flags_of $command)
    done < <(commands_of "$tool")
    look_back "$tool" "$text" "$flags"
  else
    echo "no $tool in this build: its options are not looked for"
  fi
  if command -v groff >/dev/null; then
    checks=$((checks + 1))
    complaint=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
    if [ -n "$complaint" ]; then fail "$complaint"; fi
  else
    echo "no groff: the form of $tool(1) is not looked at"
  fi
done

finish
