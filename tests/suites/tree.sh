#!/bin/bash
# SPDX-License-Identifier: MIT
# Sourced. copy_tree FOLDER: the files of the tree, tracked and new, without what a build made.
copy_tree() {
  mkdir -p "$1"
  if [ -e "${srcdir:?}/.git" ]; then
    (cd "$srcdir" && git ls-files -co --exclude-standard -z | while IFS= read -rd '' f; do if [ -e "$f" ]; then printf '%s\0' "$f"; fi; done |
      tar --null -T - -cf -) | tar -C "$1" -xf -
  else
    (cd "$srcdir" && tar --exclude=./build -cf - .) | tar -C "$1" -xf -
  fi
}
