#!/bin/bash
# SPDX-License-Identifier: MIT
# That there is a page of every tool and of what xio-tester tries, with every option of --help at its place, and an exit
# status; and that the pages are formatted without complaint.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
# shellcheck source=tests/tools/helps.sh
. "$srcdir/tests/tools/helps.sh" || exit 1
PATH=$builddir:$PATH
if xio-info --version | grep -qE '^ +help2man +no'; then skip 'built without help2man: the tools have no pages'; fi
if ! command -v groff >/dev/null; then skip 'no groff: pages are not looked at'; fi

# read_page FILE: $out is what groff complains of, and then the page without fonts.
read_page() {
  holds "no $1" test -s "$1"
  out=$(groff -man -Tutf8 -ww -z "$1" 2>&1)
  silent .
  out=$(groff -man -Tascii -P-cbou -rLL=200n "$1" 2>&1)
  # An option without a text of its own was not told apart from it.
  holds "an option of $1 has no text" test -z "$(grep '^\.HP' "$1")"
}

read_page "$srcdir/man/xiocc.1"
for tool in xiorun xio-info xio-perf xio-verify xio-tester; do
  while read -r -a command; do
    name=${command[*]:0:2}
    read_page "$builddir/man/${name/ /-}.1"
    says_all '^NAME' '^SYNOPSIS' '^EXIT STATUS' '^SEE ALSO'
    while read -r flag; do says "^ +(-[^ ]*, )*$flag( |,|\$)"; done < <(flags_of "${command[@]}")
  done < <(commands_of "$tool")
done

finish
