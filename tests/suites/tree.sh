#!/bin/bash
# SPDX-License-Identifier: MIT
# Sourced. copy_tree FOLDER: the files of the tree, tracked and new, without what a build made. renew_tree FOLDER: the same where an
# older copy may be. Only files that differ are written, and get the time of now: make compiles what changed, and only that.
copy_tree() {
  mkdir -p "$1"
  if [ -e "${srcdir:?}/.git" ]; then
    (cd "$srcdir" && git ls-files -co --exclude-standard -z | while IFS= read -rd '' f; do if [ -e "$f" ]; then printf '%s\0' "$f"; fi; done |
      tar --null -T - -cf -) | tar -C "$1" -xf -
  else
    (cd "$srcdir" && tar --exclude=./build -cf - .) | tar -C "$1" -xf -
  fi
}
# The same text, and both are programs or neither is.
is_same() {
  local one=no other=no
  if [ -x "$1" ]; then one=yes; fi
  if [ -x "$2" ]; then other=yes; fi
  [ $one = $other ] && cmp -s "$1" "$2"
}
renew_tree() {
  local file
  rm -rf "$1.new"
  copy_tree "$1.new"
  (cd "$1.new" && find . ! -type d | LC_ALL=C sort) >"$1.new.list"
  if [ ! -e "$1.list" ]; then
    rm -rf "$1"
    mv "$1.new" "$1"
  else
    LC_ALL=C comm -23 "$1.list" "$1.new.list" | (cd "$1" && xargs -d '\n' -r rm -f)
    while IFS= read -r file; do
      if is_same "$1.new/$file" "$1/$file"; then continue; fi
      # What was a folder may be a file now.
      rm -rf "${1:?}/$file"
      mkdir -p "$1/${file%/*}"
      cp -P "$1.new/$file" "$1/$file"
    done <"$1.new.list"
  fi
  mv "$1.new.list" "$1.list"
  rm -rf "$1.new"
}
