# SPDX-License-Identifier: MIT
# For tests/amdgpu/profile. pass=runs: from the lines of XIO_AMDGPU_TIMES, SITE and TIMES of one kernel. pass=text: from
# llvm-objdump -d, SITE and the instruction. pass=join: from the frames of llvm-symbolizer (an empty line behind each
# site), and these two, the tables.
# Sites are hexadecimal numbers without leading zeroes.
function before(a, b) { return length(a) != length(b) ? length(a) < length(b) : a < b }
function print_sorted(title, value, beside, most,  key, command) {
  print title
  fflush()
  command = "sort -k1,1nr -k2 | head -n " most
  for (key in value)
    if (value[key] >= 0.05 || (key in beside && beside[key] >= 0.05))
      printf "%8.1f %s%s\n", value[key], key in beside ? sprintf("%8.1f  ", beside[key]) : " ", key | command
  close(command)
}

pass == "runs" && $1 == kernel {
  if (runs == 0 || !before(last, $2)) ++runs
  last = $2
  if (!($2 in newest)) at[++n] = $2
  if (runs == 1) first[$2] = $3
  newest[$2] = runs
  count[$2] = $3
}

pass == "text" && match($0, /\/\/ [0-9A-F]+:/) {
  site = tolower(substr($0, RSTART + 3, RLENGTH - 4))
  sub(/^0+/, "", site)
  text = substr($0, 1, RSTART - 1)
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  print "0x" site "\t" text
}

pass == "join" && FILENAME != name { name = FILENAME; ++file; n = 1 }
pass == "join" && file == 1 {
  if ($0 == "") { ++n; odd = 0; next }
  odd = !odd
  if (odd) { called = $0; next }
  sub(/:[0-9]+$/, "")
  sub(/^.*\/\.\.\//, "")
  sub(/^.*\/include\/xio\//, "include/xio/")
  ++depth[n]
  function_at[n, depth[n]] = called
  # The platform's headers spell orders and intrinsics, and the compiler's are nobody's.
  if (!(n in line) && $0 !~ /device\/platform|amdgcn|hip_runtime|clang\/|\/usr\//) { line[n] = $0; own[n] = called }
  next
}
pass == "join" && file == 2 { text_of[$1] = $2; next }
pass == "join" && file == 3 {
  if (!(n in line)) { line[n] = "?"; own[n] = function_at[n, 1] }
  text = text_of[$1]
  split(text, words, " ")
  if (list != "") {
    chain = ""
    for (i = 1; i <= depth[n]; ++i) chain = chain (i > 1 ? " < " : "") function_at[n, i]
    printf "%6.1f %s %-60s %s  %s\n", $2, $1, text, line[n], chain
  }
  all += $2
  by_own[own[n]] += $2
  by_line[line[n]] += $2
  by_word[words[1]] += $2
  by_symbol[function_at[n, depth[n]]] += $2
  delete seen
  for (i = 1; i <= depth[n]; ++i)
    if (!(function_at[n, i] in seen)) { seen[function_at[n, i]] = 1; with_all[function_at[n, i]] += $2 }
  ++n
}

END {
  if (pass == "runs")
    for (i = 1; i <= n; ++i) {
      ran = newest[at[i]] == runs ? count[at[i]] : 0
      if (runs > 1) ran = (ran - first[at[i]]) / ops
      if (ran != 0) print at[i] "\t" ran
    }
  if (pass == "join" && list == "") {
    printf "%8.1f instructions\n\n", all
    print_sorted("by function that is called", by_symbol, none, 40)
    print_sorted("\nby function, with what is inlined into it, and its own", with_all, by_own, 60)
    print_sorted("\nby line", by_line, none, 60)
    print_sorted("\nby instruction", by_word, none, 40)
  }
}
