#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/vs_nvshmem over programs that only pretend to measure: medians, the ratio, the mean, what is refused, and the picture.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/tools/bench_rig.sh
. "$srcdir/tests/tools/bench_rig.sh"
# Times 3 1 2 of get_lat in three runs; put_lat only here, g_lat in both.
cat >"$at/xio" <<END
#!/bin/bash
[ "\$1" = put_lat ] || exit 0
n=\$(cat "$at/count" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$at/count"
times=(3 1 2)
echo '$head'
echo "get_lat,,thread,8,1,1,5,5,0.1,\${times[n % 3]},9"
echo '$(row g_lat thread 8 4)'
echo '$(row put_lat thread 8 4)'
END
printf '%s\n' '#!/bin/bash' "echo '$head'" "echo '$(row get_lat thread 8 16)'" "echo '$(row g_lat thread 8 2)'" >"$at/theirs"
printf '%s\n' '#!/bin/bash' 'echo "no GPU here" >&2' 'exit 1' >"$at/lost"
chmod +x "$at"/xio "$at"/theirs "$at"/lost

export NVSHMEM_RMA=$at/theirs XIO_PERF=$at/xio
run() { LAUNCH="env" "$srcdir/bench/vs_nvshmem" "$@" >"$at/out" 2>"$at/err"; }
run 3 5 "$at/raw" || fail "three runs: status $?, $(cat "$at/err")"
# 16 over the median of 3 1 2, and 2 over 4: the geometric mean of 8 and 0.5 is 2.
grep -qxF '| get_lat | thread | 8 | 2 | 16 | 8.00 |' "$at/out" || fail "medians: $(cat "$at/out")"
grep -qxF '2 rows, geometric mean 2.00, 1 below 1; 1 rows of one of them alone are left out' "$at/out" || fail "the mean: $(cat "$at/out")"
[ "$(find "$at/raw" -name 'nvshmem.*.csv' | wc -l)" = 3 ] || fail "the raw files: $(ls "$at/raw")"
NVSHMEM_RMA=$at/lost refuses '1 5' 'no GPU here'
NVSHMEM_RMA=$at/none refuses '1 5' 'none is missing'
for runs in 0 x '3 0'; do refuses "$runs" 'is no number from 1 up'; done
# README's picture is that of the figures which docs/performance.md names; a release has none.
measured=$srcdir/bench/results/2026-11-30-2xh200
if [ -e "$measured" ]; then
  "$srcdir/bench/vs_nvshmem" of "$measured" | awk -f "$srcdir/bench/nvshmem_chart.awk" | cmp - "$srcdir/docs/nvshmem.svg" || fail "docs/nvshmem.svg is not what bench/nvshmem_chart.awk makes of $measured"
fi
finish vs_nvshmem
