#!/bin/bash
# SPDX-License-Identifier: MIT
# doorbells.sh [PROGRAM]: on a machine with an NVIDIA GPU, nvcc and ncu. Each kernel of doorbells.cu rings 3,200 times; ncu
# counts the writes to host memory that leave the L2 cache's slices. A write from a multiprocessor in the other half of the
# L2 counts twice, so a kernel of one block has 3,200 or twice that, and one of several 3,200 and 100 more for each block of
# that half. Other processes write, too: up to 50 more are theirs. Fewer are rings that were merged.
# PROGRAM is a doorbells.cu that is built already.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rings=3200
program=${1-}
if [ -z "$program" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  program=$folder/doorbells
  nvcc -std=c++20 -O3 -arch=native --expt-relaxed-constexpr -I"$here/../../include" -o "$program" "$here/doorbells.cu"
fi
"$program"
ncu --csv --print-units base --clock-control none --metrics lts__t_sectors_aperture_sysmem_op_write.sum "$program" |
  awk -v rings=$rings -F'","' '
    /op_write/ {
      name = $5
      sub(/\(.*/, "", name)
      count = $NF
      gsub(/[",]/, "", count)
      printf "%-14s %5d writes of %d\n", name, count, rings
      step = name ~ /_blocks$/ ? rings / 32 : rings
      others = (count - rings) % step
      if (name ~ /^rings_/ && (count < rings || count > 2 * rings + 50 || others > 50)) bad = 1
      seen += name ~ /^rings_/
    }
    END {
      if (seen != 4) print "ncu shows " seen + 0 " kernels rings_*, and there are 4"
      exit bad || seen != 4
    }'
