# SPDX-License-Identifier: MIT
# Medians of "before|now TEST SCOPE BYTES MICROSECONDS" lines, side by side.
END {
  print "| test | scope | bytes | before, us | now, us | now / before |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    split(rows[i], part, " ")
    was = median("before " rows[i])
    is = median("now " rows[i])
    printf "| %s | %s | %s | %.4g | %.4g | %.3f |\n", part[1], part[2], part[3], was, is, (was > 0 ? is / was : 0)
  }
}
