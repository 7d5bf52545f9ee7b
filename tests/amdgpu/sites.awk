# SPDX-License-Identifier: MIT
# docs/amdgpu-sites.md from tests/amdgpu/sites.rules and the results of tests/amdgpu/sites:
# PROGRAM ROUTE MNEMONIC LINE SITES VERDICT WHY MACHINE-CODE SEED.
function text_of(where,  part, n, path, text) {
  split(where, part, ":")
  path = source "/" part[1]
  for (n = 1; n <= part[2]; ++n)
    if ((getline text < path) <= 0) text = ""
  close(path)
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}
# The first rule whose instruction, file and part of the line fit.
function rule_of(name, where, text,  i) {
  for (i = 1; i <= rules; ++i)
    if ((rule_name[i] == "*" || rule_name[i] == name) && where ~ rule_file[i] && (rule_text[i] == "" || index(text, rule_text[i]))) return rule[i]
  return "**not decided**"
}
FNR == NR {
  if ($0 == "" || /^#/) next
  ++rules
  rule_name[rules] = $1
  rule_file[rules] = $2
  rule_text[rules] = $3 == "*" ? "" : $3
  rule[rules] = $4
  next
}
{
  key = $3 "\t" $4
  run = $1 " by " $2
  if (!(run in tried)) run_at[++runs] = run
  if (!((run, key) in by_run)) {
    by_run[run, key]
    ++tried[run]
  }
  seeds[$9 == "" ? 1 : $9]
  if (!(key in sites)) key_at[++keys] = key
  if ($5 > sites[key]) sites[key] = $5
  if ($6 == "caught") {
    if (!((run, key) in noticed_in)) {
      noticed_in[run, key]
      ++caught_in[run]
    }
    # The first is as good as others.
    if (!(key in caught)) caught[key] = run ($7 == "" ? "" : ": " $7)
  }
}
END {
  for (i = 1; i <= keys; ++i) {
    split(key_at[i], of, "\t")
    ++lines[of[1]]
    if (key_at[i] in caught) ++noticed[of[1]]
  }
  print "# Ordering instructions, ignored one source line at a time\n"
  for (seed = 1; seed <= 99; ++seed)
    if (seed in seeds) all_seeds = all_seeds (all_seeds == "" ? "" : ", ") seed
  print "`tests/amdgpu/sites` wrote this at commit " commit ", whose lines these are; see [amdgpu.md](amdgpu.md), \"Memory that is late\". Programs are built for gfx90a"
  print "by hipcc 5.2 and run with two PEs on two GPUs, as short as `XIO_TEST_SHORT=1` makes them, by seed " all_seeds " (each later one for lines that nothing"
  print "had noticed). All that one line of XIO or of the test became, wherever it was inlined, was"
  print "ignored in one run; the line is the innermost one outside of `device/platform`. An order that a compiler put at a line is that line's.\n"
  print "A line is noticed if one of the programs fails without it. Code that a compiler has put together from several lines stands at one of them, or at"
  print "line 0. `make check-amd-sites` goes on where it was stopped; a line that was not tried yet is not in the table,"
  print "and neither is one that no program executes by these routes."
  print ("s_waitcnt" in lines ? "" : "Of s_waitcnt, which come last, none was tried for this one.\n")
  print "| program | lines tried | noticed |\n| --- | --- | --- |"
  for (i = 1; i <= runs; ++i) print "| " run_at[i] " | " tried[run_at[i]] " | " caught_in[run_at[i]] + 0 " |"
  print "\n| instruction | lines | noticed by some program |\n| --- | --- | --- |"
  n = split("s_waitcnt buffer_wbl2 buffer_invl2 buffer_wbinvl1_vol", names, " ")
  for (i = 1; i <= n; ++i)
    if (names[i] in lines) print "| `" names[i] "` | " lines[names[i]] " | " noticed[names[i]] + 0 " |"
  for (name in lines)
    if (name ~ /_load_/) {
      loads += lines[name]
      loads_noticed += noticed[name]
    }
  print "| `glc` of a load | " loads + 0 " | " loads_noticed + 0 " |"
  print "\n## Not noticed, and why each is not needed or what is missing\n"
  print "| line | instruction, sites | source | why |\n| --- | --- | --- | --- |"
  for (i = 1; i <= keys; ++i) {
    if (key_at[i] in caught) continue
    split(key_at[i], of, "\t")
    text = text_of(of[2])
    why = rule_of(of[1], of[2], text)
    gsub(/\|/, "\\|", text)
    print "| " of[2] " | `" of[1] "`, " sites[key_at[i]] " | `` " text " `` | " why " |"
  }
  print "\n## Noticed\n"
  print "| line | instruction, sites | by |\n| --- | --- | --- |"
  for (i = 1; i <= keys; ++i) {
    if (!(key_at[i] in caught)) continue
    split(key_at[i], of, "\t")
    print "| " of[2] " | `" of[1] "`, " sites[key_at[i]] " | " caught[key_at[i]] " |"
  }
}
