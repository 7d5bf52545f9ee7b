# SPDX-License-Identifier: MIT
# Medians of "before|now TEST SCOPE BYTES MICROSECONDS" lines, side by side.
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
  print "| test | scope | bytes | before, us | now, us | now / before |"
  print "|---|---|---|---|---|---|"
  for (i = 1; i <= many; i++) {
    split(rows[i], part, " ")
    was = median("before " rows[i])
    is = median("now " rows[i])
    printf "| %s | %s | %s | %.4g | %.4g | %.3f |\n", part[1], part[2], part[3], was, is, (was > 0 ? is / was : 0)
  }
}
