# SPDX-License-Identifier: MIT
# From an assembly listing for AMD GPUs: what each kernel costs, with all functions that it reaches. Lines are
#   op NAME INSTRUCTIONS VGPRS AGPRS SGPRS SCRATCH WAVES  registers and scratch of the deepest call, as LLVM sums them;
#                                                        waves that a SIMD can hold with so many registers
#   function NAME INSTRUCTIONS                            those that kernels call, out of line
# -v kernels="FUNCTION=NAME ...": of these kernels, in unnamed namespaces, and no lines of functions
/^[A-Za-z_][A-Za-z0-9_.$]*:/ { # a label that is no local one (.L) begins a kernel or a function
  at = $1
  sub(/:.*/, "", at)
}
/^\.Lfunc_end/ { inside = 0 }
/^\t\.type\t.*@function/ {
  name = $2
  sub(/,.*/, "", name)
  all[++count] = name
}
/^\t[a-z]+_[a-z0-9_]+/ { instructions[at]++ }
# Calls go by an address relative to the program counter, or through the table of offsets.
match($0, /[A-Za-z_][A-Za-z0-9_.$]*@(rel32|gotpcrel32)@lo/) {
  callee = substr($0, RSTART, RLENGTH)
  sub(/@.*/, "", callee)
  calls[at] = calls[at] " " callee
}
/^; NumVgprs: / { vgprs[at] = $3 }
/^; NumAgprs: / { agprs[at] = $3 }
/^; (Total)?NumSgprs: / { sgprs[at] = $3 }
/^; ScratchSize: / { scratch[at] = $3 }
/^; Occupancy: / { waves[at] = $3 }

function total(name, seen,    sum, i, n, callee) {
  if (name in seen) return 0
  seen[name] = 1
  sum = instructions[name]
  n = split(calls[name], callee, " ")
  for (i = 1; i <= n; i++) sum += total(callee[i], seen)
  return sum
}

# The op that a kernel stands for, or "".
function op_of(name,    i, n, pair, named) {
  if (kernels == "") return name ~ /^cost_/ ? substr(name, 6) : ""
  n = split(kernels, named, " ")
  for (i = 1; i <= n; i++) {
    split(named[i], pair, "=")
    if (name ~ ("^_ZN.*_GLOBAL__N.*[0-9]" pair[1] "E")) return pair[2]
  }
  return ""
}

END {
  for (i = 1; i <= count; i++) {
    name = all[i]
    op = op_of(name)
    if (op != "") {
      delete seen
      print "op", op, total(name, seen), vgprs[name], agprs[name] + 0, sgprs[name], scratch[name], waves[name]
    } else if (kernels == "" && instructions[name]) {
      print "function", name, instructions[name]
    }
  }
}
