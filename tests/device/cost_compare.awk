# SPDX-License-Identifier: MIT
# Compares two tables of cost.awk, the kept one first. A rise of more than 10 % is an error, a fall is a hint; of the
# column "waves" a fall is an error.
# -v names="its columns" -v script=NAME: of another script than cost.sh
BEGIN {
  if (!names) names = "instructions VGPRs AGPRs SGPRs scratch-bytes waves"
  if (!script) script = "cost.sh"
  columns = split(names, what, " ")
}
$1 != "op" { next }
FNR == NR {
  kept[$2] = $0
  next
}
{
  seen[$2] = 1
  if (!($2 in kept)) {
    printf "%s: not in the kept table; add it by tests/device/%s --update\n", $2, script
    bad = 1
    next
  }
  split(kept[$2], old, " ")
  for (i = 1; i <= columns; i++) {
    before = old[i + 2]
    now = $(i + 2)
    if (what[i] == "waves") {
      if (now < before) {
        printf "%s: waves fell from %d to %d\n", $2, before, now
        bad = 1
      }
    } else if (now * 10 > before * 11) {
      printf "%s: %s rose from %d to %d\n", $2, what[i], before, now
      bad = 1
    } else if (now * 11 < before * 10) {
      fell = fell sprintf("%s: %s fell from %d to %d\n", $2, what[i], before, now)
    }
  }
}
END {
  for (op in kept)
    if (!(op in seen)) {
      printf "%s: in the kept table, and no kernel of the program\n", op
      bad = 1
    }
  if (fell) printf "%s(keep the better figures: tests/device/%s --update)\n", fell, script
  exit bad
}
