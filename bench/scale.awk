# SPDX-License-Identifier: MIT
# Lines "PES STAGE... wall_us cpu_us memory_kB messages bytes loopback_bytes switches" of bench/world_costs, many PEs a stage, as a table:
# a row for what a stage costs, a column for each number of PEs, and the exponent of its law.
function cell(stage, what, n,    key) {
  key = stage SUBSEP what SUBSEP n
  if (!(key in seen)) return ""
  return what == "wall" || what == "messages" || what == "sent" ? top[key] : sum[key] / seen[key]
}
function add(stage, what, n, value,    key) {
  if (value == "-") return
  key = stage SUBSEP what SUBSEP n
  if (!(key in seen) || value > top[key]) top[key] = value
  seen[key]++
  sum[key] += value
}
function text(v) { return v >= 100 ? sprintf("%.0f", v) : sprintf("%.3g", v) }
# Least squares of log(value) over log(n) of the last three columns.
function law(stage, what,    i, x, y, k, sx, sy, sxx, sxy) {
  for (i = columns - 2; i <= columns; i++) {
    if (i < 1 || cell(stage, what, ns[i]) + 0 <= 0) continue
    x = log(ns[i]); y = log(cell(stage, what, ns[i]))
    k++; sx += x; sy += y; sxx += x * x; sxy += x * y
  }
  return k < 2 ? "" : sprintf("%.1f", (k * sxy - sx * sy) / (k * sxx - sx * sx))
}
# One row for one or two of what a stage costs.
function row(stage, first, second, unit,    i, line, v, any) {
  for (i = 1; i <= columns; i++) {
    v = cell(stage, first, ns[i])
    if (v >= least[first]) any = 1
    line = line " " (v == "" ? "" : text(v)) (second == "" ? "" : " / " text(cell(stage, second, ns[i]))) " |"
  }
  if (any) print "| " stage " | " unit " |" line " " law(stage, first) (second == "" ? "" : " / " law(stage, second)) " |"
}
{
  n = $1
  if (!(n in known)) { known[n] = 1; ns[++columns] = n }
  stage = $2
  for (i = 3; i <= NF - 7; i++) stage = stage " " $i
  if (!(stage in listed)) { listed[stage] = 1; stages[++rows] = stage }
  at = NF - 7
  add(stage, "wall", n, $(at + 1)); add(stage, "cpu", n, $(at + 2)); add(stage, "memory", n, $(at + 3))
  add(stage, "messages", n, $(at + 4)); add(stage, "sent", n, $(at + 5)); add(stage, "loopback", n, $(at + 6)); add(stage, "switches", n, $(at + 7))
}
END {
  least["wall"] = 0.001; least["memory"] = 8; least["messages"] = least["switches"] = 0.5; least["loopback"] = 2000
  line = "| what | of one call |"; rule = "|---|---|"
  for (i = 1; i <= columns; i++) { line = line " " ns[i] " PEs |"; rule = rule "---:|" }
  print line " n^x |\n" rule "---:|"
  for (i = 1; i <= rows; i++) {
    stage = stages[i]
    if (stage ~ /without work/) { row(stage, "switches", "cpu", "wake-ups / CPU us, a PE"); continue }
    row(stage, "wall", "cpu", "us / CPU us a PE")
    row(stage, "messages", "sent", "messages / bytes of a PE")
    if (stage ~ /^(init|ctx|team)$/) row(stage, "memory", "", "memory a PE, kB")
    if (bytes) row(stage, "loopback", "", "loopback, all, bytes")
  }
}
