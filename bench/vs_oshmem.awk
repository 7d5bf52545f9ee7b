# SPDX-License-Identifier: MIT
# Medians of "xio|shmem OP BYTES - NANOSECONDS" lines, side by side, with memcpy as the ceiling of put.
END {
  print "| op | bytes | XIO ns | OpenSHMEM ns | OpenSHMEM / XIO | memcpy ns | memcpy / XIO |"
  print "|---|---|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    split(rows[i], part, " ")
    if (part[1] == "memcpy") continue
    mine = median("xio " rows[i])
    theirs = count["shmem " rows[i]] ? median("shmem " rows[i]) : 0
    line = sprintf("| %s | %s | %.1f | %s | %s |", part[1], part[2], mine, theirs ? sprintf("%.1f", theirs) : "-",
                   theirs ? sprintf("%.2f", theirs / mine) : "-")
    base = "xio memcpy " part[2] " -"
    if (part[1] == "put" && count[base])
      line = line sprintf(" %.1f | %.2f |", median(base), median(base) / mine)
    else
      line = line " | |"
    print line
  }
}
