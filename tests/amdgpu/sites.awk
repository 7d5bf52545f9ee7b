# SPDX-License-Identifier: MIT
# docs/amdgpu-sites.md from what tests/amdgpu/sites has found: PROGRAM ROUTE SEED SITE TEXT KERNEL VERDICT WHY.
BEGIN {
  rule["buffer_wbl2"] = "not decided: the software GPU has no L2"
  rule["buffer_invl2"] = "not decided: the software GPU has no L2"
  rule["buffer_wbinvl1_vol"] = "a missing test, or what is read behind it was not in L1"
  rule["s_waitcnt"] = "a missing test, or a later wait comes before the use"
  rule["load"] = "a missing test, or the line was not in L1"
}
function kind_of(text,  words) {
  split(text, words, " ")
  return words[1] ~ /_load_/ ? "load" : words[1]
}
$1 == program && $2 == route && $3 == seed {
  kind = kind_of($5)
  ++tried
  ++count[kind]
  if ($7 == "caught") ++caught[kind]
  row[tried] = "| " $4 " | `" $5 "` | " ($7 == "caught" ? "caught: " $8 : "survives: " rule[kind]) " |"
}
END {
  print "# Ordering instructions, one ignored at a time\n"
  print "`tests/amdgpu/sites` wrote this; see [amdgpu.md](amdgpu.md), \"Memory that is late\". The program is `" program "` by " route \
    ", built for gfx90a by hipcc 5.2, seed " seed ", two PEs. Its kernels come to " reached " sites; " tried " of them were ignored, one in each run.\n"
  print "| instruction | tried | caught |\n| --- | --- | --- |"
  n = split("s_waitcnt load buffer_wbl2 buffer_invl2 buffer_wbinvl1_vol", kinds, " ")
  for (i = 1; i <= n; ++i)
    if (count[kinds[i]])
      print "| " (kinds[i] == "load" ? "`glc` of a load" : "`" kinds[i] "`") " | " count[kinds[i]] " | " caught[kinds[i]] + 0 " |"
  print "\n| site | instruction | result |\n| --- | --- | --- |"
  for (i = 1; i <= tried; ++i) print row[i]
}
