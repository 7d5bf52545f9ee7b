# SPDX-License-Identifier: MIT
# From lines of XIO_AMDGPU_COUNTS: of kernels executed_NAME the one with one op and the one with eleven, in this order.
function field(name) {
  if (!match($0, "\"" name "\":[0-9]+")) return 0
  return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
}
match($0, /"kernel":"executed_[a-z_]+/) {
  op = substr($0, RSTART + 19, RLENGTH - 19)
  split("instructions scratch wait writeback", kinds, " ")
  runs[op]++
  for (i = 1; i <= 4; i++) value[op, runs[op], i] = field(kinds[i])
  if (runs[op] == 1) {
    alone[op] = field("instructions")
    lines[op] = field("lines")
    order[++n] = op
  }
}
END {
  if (n == 0) exit 1
  for (k = 1; k <= n; k++) {
    op = order[k]
    if (runs[op] != 2) exit 1
    printf "op %s:%s", route, op
    for (i = 1; i <= 4; i++) printf " %d", (value[op, 2, i] - value[op, 1, i]) / 10
    print "", alone[op], lines[op]
  }
}
