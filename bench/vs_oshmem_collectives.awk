# SPDX-License-Identifier: MIT
# Medians of "xio|shmem|plain OP SCOPE BYTES MICROSECONDS" lines, side by side.

function of(side, row) { return count[side " " row] ? sprintf("%.2f", median(side " " row)) : "-" }
END {
  print "| op | scope | bytes | XIO us | OpenSHMEM us | OpenSHMEM / XIO | plain us |"
  print "|---|---|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    split(rows[i], part, " ")
    mine = of("xio", rows[i])
    theirs = of("shmem", rows[i])
    ratio = mine == "-" || theirs == "-" ? "-" : sprintf("%.2f", median("shmem " rows[i]) / median("xio " rows[i]))
    gsub(/_/, " ", part[1])
    printf "| %s | %s | %s | %s | %s | %s | %s |\n", part[1], part[2], part[3], mine, theirs, ratio, of("plain", rows[i])
  }
}
