#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/vs_nvshmem over programs that only pretend to measure: medians, the ratio, the mean, and what is refused.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
failed=0
fail() {
  echo "FAIL $*"
  failed=1
}
head='test,op,scope,bytes,ctas,threads,iterations,samples,min_us,median_us,p99_us'
# Times 3 1 2 of get_lat in three runs; put_lat only here, g_lat in both.
cat >"$at/xio" <<END
#!/bin/bash
[ "\$1" = put_lat ] || exit 0
n=\$(cat "$at/count" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$at/count"
times=(3 1 2)
echo '$head'
echo "get_lat,,thread,8,1,1,5,5,0.1,\${times[n % 3]},9"
echo 'g_lat,,thread,8,1,1,5,5,0.1,4,9'
echo 'put_lat,,thread,8,1,1,5,5,0.1,4,9'
END
printf '%s\n' '#!/bin/bash' "echo '$head'" "echo 'get_lat,,thread,8,1,1,5,5,0.1,16,9'" "echo 'g_lat,,thread,8,1,1,5,5,0.1,2,9'" >"$at/theirs"
printf '%s\n' '#!/bin/bash' 'echo "no GPU here" >&2' 'exit 1' >"$at/lost"
chmod +x "$at"/xio "$at"/theirs "$at"/lost

export NVSHMEM_RMA=$at/theirs XIO_PERF=$at/xio
run() { LAUNCH="env" "$srcdir/bench/vs_nvshmem" "$@" >"$at/out" 2>"$at/err"; }
run 3 5 "$at/raw" || fail "three runs: status $?, $(cat "$at/err")"
# 16 over the median of 3 1 2, and 2 over 4: the geometric mean of 8 and 0.5 is 2.
grep -qxF '| get_lat | thread | 8 | 2 | 16 | 8.00 |' "$at/out" || fail "medians: $(cat "$at/out")"
grep -qxF '2 rows, geometric mean 2.00, 1 below 1; 1 rows of one of them alone are left out' "$at/out" || fail "the mean: $(cat "$at/out")"
[ "$(find "$at/raw" -name 'nvshmem.*.csv' | wc -l)" = 3 ] || fail "the raw files: $(ls "$at/raw")"
if NVSHMEM_RMA=$at/lost run 1 5; then fail 'a program that fails passed'; fi
grep -q 'no GPU here' "$at/err" || fail "why it failed: $(cat "$at/err")"
if NVSHMEM_RMA=$at/none run 1 5; then fail 'a program that is not there passed'; fi
grep -q 'none is missing' "$at/err" || fail "which one is missing: $(cat "$at/err")"
for arguments in 0 'x' '3 0'; do
  # shellcheck disable=SC2086  # words
  if run $arguments; then fail "'$arguments' was taken"; fi
  [ -s "$at/err" ] || fail "'$arguments' was refused without a word"
done
[ "$failed" = 0 ] && echo "ok   vs_nvshmem"
exit "$failed"
