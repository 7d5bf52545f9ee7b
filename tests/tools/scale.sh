#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/scale over a program that only pretends to measure: the table, its laws, a way that has no time left, what is refused.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/tools/bench_rig.sh
. "$srcdir/tests/tools/bench_rig.sh"
# Two PEs a world print; the messages are n - 1 of the one and none of the other, the wall time n and half of it, the bytes n * n.
cat >"$at/xiorun" <<'PROGRAM'
#!/bin/bash
n=$2
[ "$4" = "${FAILS_AT:-}" ] && { echo 'no memory' >&2; exit 1; }
sleep "${TAKES:-0}"
echo "init $n.0 8.0 100.0 - - - 1.0"
echo "host barrier 4.0 2.0 0.0 $((n - 1)) $((n * n)) 50.0 1.0"
echo "host barrier 2.0 6.0 0.0 0 0 - 3.0"
echo "a second without work 1000000.0 30.0 0.0 0 0 - 2.0"
PROGRAM
cp "$at/xiorun" "$at/costs"
chmod +x "$at/xiorun" "$at/costs"
run() { XIORUN=$at/xiorun WORLD_COSTS=$at/costs "$srcdir/bench/scale" "$@" >"$at/out" 2>"$at/err"; }
run 8 shm || fail "8 PEs: $(cat "$at/err")"
cat >"$at/expected" <<'END_OF_TABLE'

## shm

| what | of one call | 2 PEs | 4 PEs | 8 PEs | n^x |
|---|---|---:|---:|---:|---:|
| init | us / CPU us a PE | 2 / 8 | 4 / 8 | 8 / 8 | 1.0 / 0.0 |
| init | memory a PE, kB | 100 | 100 | 100 | 0.0 |
| host barrier | us / CPU us a PE | 4 / 4 | 4 / 4 | 4 / 4 | 0.0 / 0.0 |
| host barrier | messages / bytes of a PE | 1 / 4 | 3 / 16 | 7 / 64 | 1.4 / 2.0 |
| a second without work | wake-ups / CPU us, a PE | 2 / 30 | 2 / 30 | 2 / 30 | 0.0 / 0.0 |
END_OF_TABLE
diff "$at/expected" "$at/out" || fail 'the table'
run 2 || fail "all ways: $(cat "$at/err")"
[ "$(grep -c '^## ' "$at/out")" = 3 ] || fail "not three ways: $(cat "$at/out")"
SECONDS_IN_ALL=5 TAKES=2 run 8 tcp || fail "no time left: $(cat "$at/err")"
grep -q '^tcp: 4 PEs and more are left out: [0-9] s are left, and 2 PEs took [23]' "$at/err" || fail "what is left out: $(cat "$at/err")"
for words in 0 x; do refuses "$words" 'is no number from 1 up'; done
refuses '2 ucx' "there is no way 'ucx'; give direct, shm, tcp or libfabric"
FAILS_AT=rdma refuses '2 shm' 'no memory'
rm "$at/costs"
refuses 2 'costs is missing'
finish scale
