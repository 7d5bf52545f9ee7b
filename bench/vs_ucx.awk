# SPDX-License-Identifier: MIT
# Medians of "xio|ucx EXECUTOR lat_us|bw_mbs SIZE VALUE" lines, side by side. Bandwidth of 8 bytes is shown as a rate.
function median(key,    n, i, j, v, t) {
  n = count[key]
  for (i = 1; i <= n; i++) v[i] = value[key, i]
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
  return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
NF == 5 {
  row = $2 " " $3 " " $4
  if (!(row in seen)) { seen[row] = 1; rows[++many] = row }
  value[$1 " " row, ++count[$1 " " row]] = $5
}
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
