# SPDX-License-Identifier: MIT
# Medians of "xio|ucx EXECUTOR lat_us|bw_mbs SIZE VALUE" lines, side by side. Bandwidth of 8 bytes is shown as a rate.
END {
  print "| executor | what | bytes | XIO | UCX | XIO is better by |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    split(rows[i], part, " ")
    mine = median("xio " rows[i])
    theirs = median("ucx " rows[i])
    if (part[2] == "lat_us") {
      printf "| %s | latency, us | %s | %.2f | %.2f | %.2f |\n", part[1], part[3], mine, theirs, mine ? theirs / mine : 0
    } else if (part[3] < 1024) {
      printf "| %s | Mmessages/s | %s | %.3f | %.3f | %.2f |\n", part[1], part[3], mine / part[3], theirs / part[3],
             theirs ? mine / theirs : 0
    } else {
      printf "| %s | bandwidth, MB/s | %s | %.0f | %.0f | %.2f |\n", part[1], part[3], mine, theirs,
             theirs ? mine / theirs : 0
    }
  }
}
