#!/bin/bash
# SPDX-License-Identifier: MIT
# Proves ring.pml for a few sizes, and checks that the proof finds each of its deliberate mistakes.
set -euo pipefail
model=$(cd "$(dirname "$0")" && pwd)/ring.pml
if ! command -v spin >/dev/null || ! command -v cc >/dev/null; then
  echo "skipped: needs spin and a C compiler"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# explore FLAGS...: all interleavings of that size; the report is in pan.out
explore() {
  spin -a "$@" "$model" >spin.out || { cat spin.out; exit 1; }
  cc -w -O1 -DSAFETY -DCOLLAPSE -o pan pan.c
  timeout 50 ./pan -m1000000 >pan.out 2>&1 || { cat pan.out; exit 1; }
  if grep -q 'Search not completed\|max search depth too small' pan.out && ! grep -q '^pan:1:' pan.out; then
    cat pan.out
    exit 1
  fi
}

for size in '-DDEPTH=2 -DPOSTERS=2 -DOPS=3' '-DDEPTH=2 -DPOSTERS=3 -DOPS=1' '-DDEPTH=4 -DPOSTERS=2 -DOPS=2 -DSLOTS=2'; do
  # shellcheck disable=SC2086  # words
  explore $size
  if ! grep -q 'errors: 0$' pan.out; then
    cat pan.out
    echo "FAILED: the ring is wrong with $size"
    exit 1
  fi
  echo "right: $size:$(grep 'states, stored' pan.out)"
done

for mistake in 1 2 3 4 5 6 7 8 9; do
  explore -DDEPTH=2 -DPOSTERS=2 -DOPS=3 -DBROKEN=$mistake
  if ! grep -q '^pan:1:' pan.out; then
    echo "FAILED: mistake $mistake was not found"
    exit 1
  fi
  echo "mistake $mistake found: $(grep '^pan:1:' pan.out)"
done
