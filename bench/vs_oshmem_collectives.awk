# SPDX-License-Identifier: MIT
# Medians of "xio|shmem OP BYTES - MICROSECONDS" lines, side by side.

END {
  print "| op | bytes | XIO us | OpenSHMEM us | OpenSHMEM / XIO |"
  print "|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    split(rows[i], part, " ")
    mine = median("xio " rows[i])
    theirs = count["shmem " rows[i]] ? median("shmem " rows[i]) : 0
    gsub(/_/, " ", part[1])
    printf "| %s | %s | %.2f | %s | %s |\n", part[1], part[2], mine, theirs ? sprintf("%.2f", theirs) : "-",
           theirs ? sprintf("%.2f", theirs / mine) : "-"
  }
}
