#!/bin/bash
# SPDX-License-Identifier: MIT
# Proves ring.pml, nvme.pml and view.pml for a few sizes, and checks that the proofs find each of their deliberate mistakes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
model=$here/ring.pml
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

# Posting by a leaf, then one that waits for credits by itself; failures and deadlines; and kinds of rings.
sizes=(
  '-DDEPTH=2 -DPOSTERS=2 -DOPS=3' '-DDEPTH=2 -DPOSTERS=3 -DOPS=1' '-DDEPTH=4 -DPOSTERS=2 -DOPS=2 -DSLOTS=2'
  '-DDEPTH=2 -DPOSTERS=2 -DOPS=3 -DLEAF=0'
  '-DDEPTH=2 -DPOSTERS=2 -DOPS=2 -DFAILS=1' '-DDEPTH=2 -DPOSTERS=2 -DOPS=2 -DFAILS=1 -DLEAF=0'
  '-DDEPTH=2 -DPOSTERS=2 -DOPS=2 -DSERIAL=1'
  '-DDEPTH=2 -DPOSTERS=2 -DOPS=2 -DSLOTS=2 -DKEPT=1'
  '-DDEPTH=4 -DPOSTERS=1 -DOPS=4 -DSLOTS=2 -DALONE=1 -DFAILS=1')
# prove FLAGS...
prove() {
  explore "$@"
  if ! grep -q 'errors: 0$' pan.out; then
    cat pan.out
    echo "FAILED: $(basename "$model") is wrong with $*"
    exit 1
  fi
  echo "right: $(basename "$model") $*:$(grep 'states, stored' pan.out)"
}
# shellcheck disable=SC2086  # words
for size in "${sizes[@]}"; do prove $size; done

# find MISTAKE FLAGS...
find_mistake() {
  explore -DBROKEN="$1" "${@:2}"
  if ! grep -q '^pan:1:' pan.out; then
    echo "FAILED: mistake $1 was not found"
    exit 1
  fi
  echo "mistake $1 found: $(grep '^pan:1:' pan.out)"
}
for mistake in 1 2 3 4 5 6 7 8 9; do find_mistake $mistake -DDEPTH=2 -DPOSTERS=2 -DOPS=3; done
for mistake in 10 11; do find_mistake $mistake -DDEPTH=2 -DPOSTERS=2 -DOPS=2 -DFAILS=1; done
find_mistake 12 -DDEPTH=2 -DPOSTERS=2 -DOPS=2 -DSERIAL=1
for mistake in 13 14; do find_mistake $mistake -DDEPTH=2 -DPOSTERS=2 -DOPS=2 -DSLOTS=2 -DKEPT=1; done
find_mistake 15 -DDEPTH=4 -DPOSTERS=1 -DOPS=4 -DSLOTS=2 -DALONE=1 -DFAILS=1

model=$here/nvme.pml
prove -DPOSTERS=2 -DOPS=2 -DIDS=2
prove -DPOSTERS=1 -DOPS=8 -DFAULTS=3
prove -DPOSTERS=1 -DOPS=8 -DIDS=4 -DFAULTS=2
for mistake in 1 2 3 5; do find_mistake $mistake -DPOSTERS=1 -DOPS=8 -DFAULTS=3; done
find_mistake 4 -DPOSTERS=2 -DOPS=2 -DIDS=2

model=$here/view.pml
prove -DN=3
prove -DN=3 -DL0=0 -DL1=1
find_mistake 1
