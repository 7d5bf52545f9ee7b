# SPDX-License-Identifier: MIT
# Medians of "op bytes ns" lines from files named xio.N and shmem.N, side by side.
function median(side, key,    n, i, j, v, t) {
  n = count[side, key]
  for (i = 1; i <= n; i++) v[i] = value[side, key, i]
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && v[j - 1] > v[j]; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
  return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
NF == 3 && $1 !~ /^#/ {
  side = FILENAME ~ /\/xio\.[0-9]+$/ ? "xio" : "shmem"
  key = $1 " " $2
  if (!(key in seen)) { seen[key] = 1; order[++keys] = key }
  value[side, key, ++count[side, key]] = $3
}
END {
  printf "| op | bytes | XIO ns | OpenSHMEM ns | OpenSHMEM / XIO | memcpy ns | memcpy / XIO |\n"
  printf "|---|---|---|---|---|---|---|\n"
  for (i = 1; i <= keys; i++) {
    key = order[i]
    split(key, part, " ")
    if (part[1] == "memcpy") continue
    mine = median("xio", key)
    theirs = count["shmem", key] ? median("shmem", key) : 0
    line = sprintf("| %s | %s | %.1f | %s | %s |", part[1], part[2], mine, theirs ? sprintf("%.1f", theirs) : "-",
                   theirs ? sprintf("%.2f", theirs / mine) : "-")
    base = "memcpy " part[2]
    if (part[1] == "put" && count["xio", base])
      line = line sprintf(" %.1f | %.2f |", median("xio", base), median("xio", base) / mine)
    else
      line = line " | |"
    print line
  }
}
