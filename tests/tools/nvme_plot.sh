#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/nvme_plot over a program that only pretends to measure: every row is in the table, every curve in the picture.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/tools/bench_rig.sh
. "$srcdir/tests/tools/bench_rig.sh"

# IOPS name their own row: 1000 times the threads, 10 times the queues, the depth.
mkdir "$at/bench" "$at/bin"
cat >"$at/bench/nvme" <<'END'
#!/bin/bash
echo "rate $3 $4 $5 $6 $((1000 * $4 + 10 * $5 + $6)) 0.5"
END
cat >"$at/bin/gnuplot" <<END
#!/bin/bash
cat >"$at/script"
END
chmod +x "$at/bench/nvme" "$at/bin/gnuplot"

run() { XIO_TEST_BENCH_DIR=$at/bench "$srcdir/bench/nvme_plot" "$@" 2>"$at/err"; }
PATH=$at/bin:$PATH run "$at/out" file:none 1 || fail "status $?, $(cat "$at/err")"
[ "$(wc -l <"$at/out.csv")" = 57 ] || fail "a head and 2 x 4 x 7 rows: $(wc -l <"$at/out.csv") lines"
[ "$(grep -o "'-' using" "$at/script" | wc -l)" = 8 ] || fail 'eight curves'
grep -q "'4K' 4096" "$at/script" || fail 'no tick says 4K'
# The points of 8 queues of 64, and of no others, between the 3rd and the 4th end of data.
awk '/^e$/ {++n; next} n == 3 && /^[0-9]/' "$at/script" >"$at/points"
for threads in 1 4 16 64 256 1024 4096; do echo "$threads $((1000 * threads + 80 + 64))"; done | cmp -s - "$at/points" ||
  fail "8 queues of 64: $(tr '\n' ';' <"$at/points")"
if command -v gnuplot >/dev/null; then
  run "$at/drawn" file:none 1
  [ "$(head -c 4 "$at/drawn.png" | tail -c 3)" = PNG ] || fail 'gnuplot drew no PNG'
else
  echo 'no gnuplot: no picture was drawn'
fi
refuses '' '^usage: '
refuses "$at/out file:none x" 'is no number from 1 up'
finish
