# SPDX-License-Identifier: MIT
# sites.md of the build folder, from tests/amdgpu/sites.rules and the results of tests/amdgpu/sites:
# PROGRAM ROUTE MNEMONIC LINE SITES VERDICT WHY MACHINE-CODE SEED.
function text_of(where,  part, n, path, text) {
  split(where, part, ":")
  if (part[2] == 0) return ""
  path = source "/" part[1]
  for (n = 1; n <= part[2]; ++n)
    if ((getline text < path) <= 0) text = ""
  close(path)
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}
# The first rule whose instruction, file and part of the line fit.
function rule_of(name, where, text,  i) {
  for (i = 1; i <= fits; ++i)
    if ((fit_name[i] == "*" || fit_name[i] == name) && where ~ fit_file[i] &&
        (fit_text[i] == "*" || fit_text[i] == "=" text || index(text, fit_text[i])))
      return fit_rule[i]
  return "**not decided**"
}
# Whether line a of a file comes after line b, files by name.
function after(a, b,  x, y) {
  split(a, x, ":")
  split(b, y, ":")
  return x[1] != y[1] ? x[1] > y[1] : x[2] + 0 > y[2] + 0
}
function in_short(name) { return name ~ /_load_/ ? "glc" : name }
# The programs of `names`, each with its routes at this line.
function runs_of(where, names,  n, k, of, all) {
  n = split(names, of, ", ")
  for (k = 1; k <= n; ++k) all = with(all, of[k] " " routes[where, of[k]])
  return all
}
# The words, and `word` behind them if it is not among them.
function with(words, word) { return index(", " words ",", ", " word ",") ? words : words == "" ? word : words ", " word }
FNR == NR {
  if ($0 == "" || /^#/) next
  if ($1 ~ /^[RM][0-9]+$/) {
    rule_at[++rules] = $1
    if ($1 ~ /^M/) ++missing
    title[$1] = $2
    says[$1] = $3
    next
  }
  ++fits
  fit_name[fits] = $1
  fit_file[fits] = $2
  fit_text[fits] = $3
  fit_rule[fits] = $4
  next
}
{
  key = $3 "\t" $4
  if (!($4 in seen)) line_at[++lines] = $4
  seen[$4]
  if (!(key in sites)) {
    sites[key]
    of_line[$4] = of_line[$4] (of_line[$4] == "" ? "" : "\n") $3
  }
  if (index(routes[$4, $1], substr($2, 1, 1)) == 0) {
    routes[$4, $1] = routes[$4, $1] substr($2, 1, 1)
    programs[$4] = with(programs[$4], $1)
  }
  if (index(routes["", $1], substr($2, 1, 1)) == 0) {
    routes["", $1] = routes["", $1] substr($2, 1, 1)
    all_programs = with(all_programs, $1)
  }
  ++seeds[$9 == "" ? 1 : $9]
  if ($6 != "caught") next
  if (!(key in caught)) ++ways[$7 ~ /^a register/ ? "register" : $7 ~ /^FAIL/ ? "check" : "end"]
  caught[key]
}
END {
  for (i = 2; i <= lines; ++i)
    for (k = i; k > 1 && after(line_at[k - 1], line_at[k]); --k) {
      at = line_at[k]
      line_at[k] = line_at[k - 1]
      line_at[k - 1] = at
    }
  for (i = 1; i <= lines; ++i) {
    where = line_at[i]
    text = text_of(where)
    own = where !~ /^tests\//
    n = split(of_line[where], names, "\n")
    left = rules_here = good = ""
    for (k = 1; k <= n; ++k) {
      short = in_short(names[k])
      ++tried[short]
      if ((names[k] "\t" where) in caught) {
        ++noticed[short]
        good = with(good, short)
        continue
      }
      rule = rule_of(names[k], where, text)
      left = with(left, "`" short "` " rule)
      if (index(", " rules_here ",", ", " rule ",") == 0) {
        rules_here = with(rules_here, rule)
        ++lines_of[rule]
      }
    }
    ++all_lines[own]
    if (left == "") ++whole[own]
    split(where, part, ":")
    if (good != "" && !(part[1] in of_file)) file_at[++files] = part[1]
    if (good != "") {
      of_file[part[1]]
      if (index(", " good ",", ", s_waitcnt,")) waits[part[1]] = with(waits[part[1]], part[2])
      sub(/(^|, )s_waitcnt/, "", good)
      sub(/^, /, "", good)
      if (good != "") others[part[1]] = with(others[part[1]], part[2] " `" good "`")
    }
    if (left == "") continue
    if (length(text) > 90) text = substr(text, 1, 88) ".."
    gsub(/\|/, "\\|", text)
    table = table "| " where " | " (text == "" ? "several" : "`` " text " ``") " | " left " | " runs_of(where, programs[where]) " |\n"
  }
  for (seed = 1; seed <= 99; ++seed)
    if (seed in seeds) all_seeds = with(all_seeds, seeds[seed] " by seed " seed)
  print "# Which ordering instructions the tests notice\n"
  print "Every wait, cache write-back, invalidate and `glc` that the compiler made of a source line is ignored, one line in a run, on the software AMD GPU with"
  print "late memory (docs/amdgpu.md). A line is *noticed* if a program then fails, by a check, without end, or because the interpreter stops a kernel"
  print "that uses a register before its load is there. Each line that no program notices has a rule by which it is not needed there, R1 and so on below" (missing ? ", or its test is missing: M" : "") ".\n"
  print "| | of XIO's headers | of the tests |\n| --- | --- | --- |"
  print "| source lines with ordering instructions | " all_lines[1] " | " all_lines[0] + 0 " |"
  print "| all that the line became is noticed | " whole[1] " | " whole[0] + 0 " |"
  print "| something of it is not: listed below | " all_lines[1] - whole[1] " | " all_lines[0] - whole[0] " |\n"
  print "| instruction | lines | noticed |\n| --- | --- | --- |"
  n = split("s_waitcnt glc buffer_wbinvl1_vol buffer_invl2 buffer_wbl2", names, " ")
  for (i = 1; i <= n; ++i) print "| `" names[i] "`" (names[i] == "glc" ? " of a load" : "") " | " tried[names[i]] + 0 " | " noticed[names[i]] + 0 " |"
  print "\nFirst noticed by a register that is used too early: " ways["register"] + 0 "; by a check of the program: " ways["check"] + 0 "; by no end, or another error: " ways["end"] + 0 "."
  print "Most orders of the caches are made by several instructions, none of which is missed alone; `tests/amdgpu/put_back` ignores such together.\n"
  print "`tests/amdgpu/sites` wrote this. Lines are those of commit " commit ", built for gfx90a by hipcc 5.2; two PEs on two GPUs,"
  print "`XIO_TEST_SHORT=1`. Runs with a line ignored: " all_seeds " (a line that one has noticed is not tried again)."
  print "Programs, by their routes (d direct, r rdma, s sdma): " runs_of("", all_programs) "."
  print "The line is the innermost one outside of `device/platform`; all sites of it, wherever it was inlined, are ignored together. Line 0 is code that"
  print "a compiler has put together from several. Lines that no program executes by these routes are not here. `make check-amd-sites` goes on where it was stopped.\n"
  print "## Rules\n"
  print "LLVM: [User Guide for AMDGPU Backend](https://llvm.org/docs/AMDGPUUsage.html#memory-model-gfx90a), \"Memory Model GFX90A\" and its table of code sequences. ISA: AMD Instinct MI200"
  print "Instruction Set Architecture. `put_back NAME`: the part of `tests/amdgpu/put_back`, in `make check-amd`, that ignores all of these together, which must be noticed.\n"
  print "| rule | lines | |\n| --- | --- | --- |"
  for (i = 1; i <= rules; ++i) print "| " rule_at[i] " | " lines_of[rule_at[i]] + 0 " | **" title[rule_at[i]] "** " says[rule_at[i]] " |"
  print "\n## Not noticed\n"
  print "| line | text | ignored, and rule | programs |\n| --- | --- | --- | --- |"
  printf "%s", table
  print "\n## Noticed\n"
  print "| file | `s_waitcnt` of lines | others |\n| --- | --- | --- |"
  for (i = 1; i <= files; ++i) print "| " file_at[i] " | " waits[file_at[i]] " | " others[file_at[i]] " |"
}
