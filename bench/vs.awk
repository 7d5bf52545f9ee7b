# SPDX-License-Identifier: MIT
# Medians of "xio|RIVAL TEST SCOPE BYTES MICROSECONDS" lines, side by side; -v rival=NAME. A row that one of them lacks is left out and
# counted.
END {
  print "| test | scope | bytes | XIO, us | " rival ", us | " rival " / XIO |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    if (!count["xio " rows[i]] || !count[rival " " rows[i]]) { lone++; continue }
    split(rows[i], part, " ")
    mine = median("xio " rows[i])
    theirs = median(rival " " rows[i])
    ratio = mine > 0 ? theirs / mine : 0
    printf "| %s | %s | %s | %.4g | %.4g | %.2f |\n", part[1], part[2], part[3], mine, theirs, ratio
    if (ratio > 0) sum += log(ratio)
    if (ratio < 1) below++
    both++
  }
  if (both == 0) { print "no row of both" >"/dev/stderr"; exit 1 }
  printf "\n%d rows, geometric mean %.2f, %d below 1", both, exp(sum / both), below
  if (lone) printf "; %d rows of one of them alone are left out", lone
  print ""
}
