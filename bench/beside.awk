# SPDX-License-Identifier: MIT
# Reads "WHO A B C VALUE" lines: many rows "A B C" in the order in which they come, and what each WHO has for one as
# median(WHO " " row). For scripts that lay one beside the other; each has its own END.
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
