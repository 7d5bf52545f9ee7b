# SPDX-License-Identifier: MIT
# Medians of "xio|shmem OP BYTES - MICROSECONDS" lines, side by side.

END {
  print "| op | bytes | XIO us | OpenSHMEM us | OpenSHMEM / XIO |"
  print "|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    split(rows[i], part, " ")
    mine = median("xio " rows[i]); theirs = median("shmem " rows[i])
    gsub(/_/, " ", part[1])
    printf "| %s | %s | %.2f | %.2f | %.2f |\n", part[1], part[2], mine, theirs, theirs / mine
  }
}
