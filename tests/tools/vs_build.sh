#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/vs_build over programs that only pretend to measure: medians over the rounds, the ratio, and what is refused.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/tools/bench_rig.sh
. "$srcdir/tests/tools/bench_rig.sh"

# fake NAME MICROSECONDS...: the n-th start of a test prints the n-th of them.
fake() {
  local name=$1
  shift
  cat >"$at/$name" <<END
#!/bin/bash
times=($*)
n=\$(cat "$at/$name.\$1" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$at/$name.\$1"
[ "\${times[0]}" = dies ] && { echo 'no GPU here' >&2; exit 1; }
echo '$head'
echo "\$1,,thread,8,1,1,5,5,0.1,\${times[n % 3]},9"
END
  chmod +x "$at/$name"
}
fake old 4 2 8
fake new 1 3 2
fake lost dies

run() { LAUNCH="env" "$srcdir/bench/vs_build" "$@" >"$at/out" 2>"$at/err"; }
run "$at/old" "$at/new" 3 5 || fail "three rounds: status $?, $(cat "$at/err")"
grep -qxF '| g_lat | thread | 8 | 4 | 2 | 0.500 |' "$at/out" || fail "medians of 4 2 8 and 1 3 2: $(grep g_lat "$at/out")"
[ "$(grep -c '^| [a-z]*_' "$at/out")" = 7 ] || fail "a row for each test: $(cat "$at/out")"
refuses "$at/old $at/lost 1 5" 'lost put_lat .* failed'
grep -q 'no GPU here' "$at/err" || fail "why it failed: $(cat "$at/err")"
refuses '' 'vs_build BEFORE NOW'
refuses "$at/old" 'vs_build BEFORE NOW'
refuses "$at/old $at/none" 'none is missing'
for rounds in 0 '3 x'; do refuses "$at/old $at/new $rounds" 'is no number from 1 up'; done
finish vs_build
