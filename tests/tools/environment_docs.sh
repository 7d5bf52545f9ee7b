#!/bin/bash
# SPDX-License-Identifier: MIT
# docs/environment.md says what xio-info --env says. After a change of src/base/options.def:
#   XIO_TEST_BUILDDIR=build tests/tools/environment_docs.sh --update
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
info=$builddir/xio-info
page=$srcdir/docs/environment.md
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
unset "${!XIO_@}" 2>/dev/null

# The page as it should be: its text up to the first group, then a table for each group.
{
  sed '/^## /,$d' "$page"
  "$info" --env | awk '
    /^(user|transport|test): / {
      title = $0
      sub(/^[a-z]+: /, "", title)
      printf "%s## %s%s\n\n", between, toupper(substr(title, 1, 1)), substr(title, 2)
      print "| Variable | Type | Default | Meaning |"
      print "| --- | --- | --- | --- |"
      between = "\n"
      next
    }
    /^$/ {next}
    /^XIO_/ {
      name = $1
      at = match($0, /; default [^;]*\)$/)
      type = substr($0, length(name) + 3, at - length(name) - 3)
      fallback = substr($0, at + 10, length($0) - at - 10)
      gsub(/\|/, ", ", type)
      next
    }
    {
      sub(/^ +/, "")
      gsub(/\|/, "\\|")
      gsub(/</, "\\&lt;")
      printf "| `%s` | %s | %s | %s |\n", name, type, fallback == "empty" ? "" : "`" fallback "`", $0
    }'
} >"$work/page" || exit 1

if [ "${1:-}" = --update ]; then
  cp "$work/page" "$page"
elif ! diff -u "$page" "$work/page"; then
  echo 'docs/environment.md is not what xio-info --env says; tests/tools/environment_docs.sh --update writes it anew'
  exit 1
fi
rows=$(grep -c '^| `XIO_' "$page")
echo "$rows variables"
[ "$rows" = "$(grep -c '^XIO_[A-Z]*_OPTION(' "$srcdir/src/base/options.def")" ]
