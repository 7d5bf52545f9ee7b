# SPDX-License-Identifier: MIT
# Reads gfx90a assembly and checks one function per name in -v names="a b c", each of which rings a doorbell and stores
# nothing else than doorbells and the records beside them: every store must come after a system-scope release of its
# own. On gfx90a that release is buffer_wbl2 (write back the L2, for readers outside the GPU) and then s_waitcnt vmcnt(0)
# (LLVM, "User Guide for AMDGPU Backend", memory model GFX90A).
BEGIN {
  n = split(names, list, " ")
  for (i = 1; i <= n; ++i) wanted[list[i]] = 1
}
/^[A-Za-z_][A-Za-z0-9_]*:/ {
  name = $1
  sub(/:.*/, "", name)
  inside = (name in wanted)
  if (inside) {
    seen[name] = 1
    stores = written_back = released = 0
    wrong = "no store at all"
  }
}
/^\.Lfunc_end/ {
  if (inside && wrong != "") {
    print name ": " wrong
    bad = 1
  }
  inside = 0
}
!inside { next }
$1 == "buffer_wbl2" { written_back = 1 }
$1 == "s_waitcnt" && /vmcnt\(0\)/ { if (written_back) released = 1 }
$1 ~ /^(global|flat|buffer)_(store|atomic)/ {
  if (++stores == 1) wrong = ""
  if (!released) wrong = "store " stores " (" $1 ") has no system-scope release of its own before it"
  written_back = released = 0
}
END {
  for (i = 1; i <= n; ++i)
    if (!(list[i] in seen)) {
      print list[i] ": not in the assembly"
      bad = 1
    }
  exit bad
}
