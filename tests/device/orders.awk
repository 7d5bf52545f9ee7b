# SPDX-License-Identifier: MIT
# Reads assembly for AMD GPUs, -v target=gfx942, along all ways through each function, and says what is wrong:
#   everywhere        a write-back of the L2 is waited for before anything is stored, called or left;
#                     no load is only non-temporal, which looks into caches
#   release_SCOPE_*   every store and atomic comes after a release of that scope of its own
#   post_*            likewise, of system scope, but for stores of 16 bytes, which are the slot
#   fetch_*           every load from memory has the bits of system scope; so has all that copies from peers out of line
# What a release and those bits are: LLVM, "User Guide for AMDGPU Backend", memory model of each GPU.
# -v least="release_ 40 fetch_ 8": so many kernels of each kind must be there.

BEGIN {
  if (target ~ /^gfx90a/) {
    write_back["system"] = "^buffer_wbl2$"
    scope_bits = " glc"
  } else if (target ~ /^gfx9[45]/) {
    write_back["system"] = "^buffer_wbl2 sc0 sc1$"
    write_back["agent"] = "^buffer_wbl2 (sc0 )?sc1$"
    scope_bits = " sc0 sc1"
  } else if (target ~ /^gfx10/) {
    scope_bits = " glc dlc"
  } else if (target ~ /^gfx11/) {
    scope_bits = " glc"
  } else if (target ~ /^gfx12/) {
    write_back["system"] = "^global_wb scope:SCOPE_SYS$"
    scope_bits = " scope:SCOPE_SYS"
  } else {
    print "orders.awk does not know the target '" target "'"
    exit bad = 1
  }
  counts_loads_apart = target ~ /^gfx1[0-2]/
}

function complain(what) {
  print target ": " name ": " what
  bad = 1
}

# Waits for all stores, or for all loads; before gfx10 both are counted as one.
function waits_for_stores(s) {
  if (target ~ /^gfx9/) return s ~ /^s_waitcnt .*vmcnt\(0\)/
  if (target ~ /^gfx12/) return s ~ /^s_wait_storecnt(_dscnt)? 0x0/
  return s ~ /^s_waitcnt_vscnt null, 0x0/
}
function waits_for_loads(s) {
  if (target ~ /^gfx12/) return s ~ /^s_wait_loadcnt(_dscnt)? 0x0/
  return s ~ /^s_waitcnt .*vmcnt\(0\)/
}
# An atomic that returns what was there is counted as a load.
function returns(s) { return s ~ /_atomic_/ && s ~ / (glc|sc0|th:TH_ATOMIC_RETURN)/ }
function is_store(s) { return s ~ /^(global|flat|buffer)_(store|atomic)_/ }
function is_load(s) { return s ~ /^(global|flat)_load_/ }
function is_wide(s) { return s ~ /_(dwordx4|b128) / }

# ---- a function's text ---------------------------------------------------------------------------------------------
/^[A-Za-z_][A-Za-z0-9_.$]*:/ {
  name = $1
  sub(/:.*/, "", name)
  count = 0
  split("", at)
  split("", text)
  next
}
/^\.LBB[0-9_]*:/ {
  label = $1
  sub(/:.*/, "", label)
  at[label] = count + 1
  next
}
/^\.Lfunc_end/ {
  if (count) judge()
  count = 0
  next
}
/^[ \t]+[a-z][a-z0-9]*_/ {
  line = $0
  sub(/[ \t]*;.*/, "", line)
  gsub(/[ \t]+/, " ", line)
  sub(/^ /, "", line)
  sub(/ $/, "", line)
  if (line != "") text[++count] = line
}

# ---- what is asked of it -------------------------------------------------------------------------------------------
function judge(    i, kind) {
  kind = ""
  if (name ~ /^release_system_/ || name ~ /^post_/) kind = "system"
  if (name ~ /^release_agent_/) kind = "agent"
  look_at_loads()
  flow(kind, name ~ /^post_/)
  for (i in prefixes) if (index(name, i) == 1) seen[i]++
}

function look_at_loads(    i, loads, run, longest, fetches) {
  fetches = name ~ /^fetch_/ || name ~ /copy_(unaligned|alone_leaf)ILNS1_6sourceE1E/
  loads = run = longest = 0
  for (i = 1; i <= count; i++) {
    # The function that loads for it is judged by itself.
    if (fetches && text[i] ~ /copy_(unaligned|alone_leaf)ILNS1_6sourceE1E/) loads++
    if (!is_load(text[i])) {
      if (text[i] ~ /^s_wait/) run = 0
      continue
    }
    if (text[i] ~ / (nt|slc)( |$)| th:TH_LOAD_(NT|HT|RT_NT|NT_RT|NT_HT)/ && index(text[i], scope_bits) == 0)
      complain("is only non-temporal: " text[i])
    if (!fetches) continue
    loads++
    if (index(text[i], scope_bits) == 0) complain("may be of a stale cache line: " text[i])
    if (is_wide(text[i]) && ++run > longest) longest = run
  }
  if (fetches && loads == 0) complain("does not load from memory")
  if (name ~ /^fetch_(wave|wg)$|copy_alone_leafILNS1_6sourceE1E/ && longest < 4)
    complain("has at most " longest " wide loads under way at once, expected 4")
}

# Along all ways. Of each instruction's start: how[i] has a bit for each of these that holds on some way to it.
#   1  a write-back is not waited for
#   2  something was stored, and no release of the scope that is asked for has come since
#   4  the same of an atomic that is counted as a load
#   8  no write-back of the scope that is asked for is under way
function flow(kind, slots,    i, again, out, target_label, stores) {
  split("", how)
  split("", reached)
  # Where a release writes back it must do so though nothing was stored by this thread.
  how[1] = 8 + (kind != "" && (kind in write_back) ? 2 : 0)
  reached[1] = 1
  do {
    again = 0
    for (i = 1; i <= count; i++) {
      if (!(i in reached)) continue
      out = after(how[i], text[i], kind)
      if (text[i] ~ /^s_c?branch/) {
        target_label = text[i]
        sub(/.* /, "", target_label)
        if (target_label in at) again += spread(at[target_label], out)
      }
      if (text[i] !~ /^(s_branch|s_endpgm|s_setpc_b64)/) again += spread(i + 1, out)
    }
  } while (again)
  stores = 0
  for (i = 1; i <= count; i++) {
    if (!(i in reached)) continue
    if (bit(how[i], 1) && (is_store(text[i]) || text[i] ~ /^(s_endpgm|s_setpc|s_swappc|s_barrier)/))
      complain("'" text[i] "' does not wait for the write-back before it")
    if (kind == "" || !is_store(text[i]) || (slots && is_wide(text[i]))) continue
    stores++
    if (bit(how[i], 2) || bit(how[i], 4)) complain("'" text[i] "' has no " kind "-scope release of its own before it")
  }
  if (kind != "" && stores == 0) complain("does not store")
}

function bit(bits, b) { return int(bits / b) % 2 }
function spread(i, bits,    b, all) {
  if (i > count) return 0
  all = how[i] + 0
  for (b = 1; b <= 8; b *= 2)
    if (bit(bits, b) && !bit(all, b)) all += b
  if ((i in reached) && all == how[i]) return 0
  how[i] = all
  reached[i] = 1
  return 1
}

function after(bits, s, kind,    pending, stored, changed, absent, which) {
  pending = bit(bits, 1)
  stored = bit(bits, 2)
  changed = bit(bits, 4)
  absent = bit(bits, 8)
  for (which in write_back)
    if (s ~ write_back[which]) {
      pending = 1
      if (which == kind) absent = 0
    }
  if (waits_for_stores(s)) {
    if (!(kind in write_back) || !absent) stored = 0
    pending = 0
    absent = 1
  }
  if (waits_for_loads(s)) changed = 0
  if (is_store(s)) {
    if (returns(s) && counts_loads_apart) changed = 1
    if (!(returns(s) && counts_loads_apart) || (kind in write_back)) stored = 1
    absent = 1
  }
  return pending + 2 * stored + 4 * changed + 8 * absent
}

function wish(    n, i, list) {
  n = split(least, list, " ")
  for (i = 1; i < n; i += 2) prefixes[list[i]] = list[i + 1]
}
FNR == 1 { wish() }

END {
  for (i in prefixes)
    if (seen[i] < prefixes[i]) {
      print target ": " seen[i] + 0 " kernels " i "*, expected " prefixes[i]
      bad = 1
    }
  exit bad
}
