#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/vs_oshmem_collectives over programs that only pretend to measure: medians, ratios, rows of one side alone, a
# crash behind the last row, and what is refused.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/tools/bench_rig.sh
. "$srcdir/tests/tools/bench_rig.sh"
# Times 3 1 2 of an 8-byte reduce in three runs; broadcast only here, barrier in both.
cat >"$at/xio-perf" <<END
#!/bin/bash
echo "test,op,scope,bytes,mean_us"
echo "\$XIO_ROUTE \$*" >>"$at/given"
[ "\$1" != broadcast ] || echo broadcast,,block,4096,7.0
[ "\$1" != sync ] || echo barrier,,block,0,8.0
[ "\$1" = reduce ] || exit 0
n=\$(cat "$at/count" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$at/count"
times=(3 1 2)
echo "reduce,sum,block,8,\${times[n % 3]}.0"
END
# Open MPI's own may crash once the rows are there.
printf '%s\n' '#!/bin/bash' "echo \"\$*\" >\"$at/given_shmem\"" \
  "printf '%s\n' '| reduce | 8 | 5.00 |' '| barrier | 0 | 2.00 |'" 'exit 139' >"$at/oshmem_collectives"
printf '%s\n' '#!/bin/bash' "echo \"\$*\" >\"$at/given_plain\"" \
  "printf '%s\n' '| broadcast | 4096 | 6.50 |' '| broadcast by a root that waits for nobody | 8 | 0.03 |'" >"$at/plain_shared"
printf '%s\n' '#!/bin/bash' "echo '| reduce | 8 | 5.00 |'" "echo 'no memory' >&2" 'exit 1' >"$at/dies"
# Launchers: options with their words, the program, and its arguments.
mkdir "$at/bin"
for launcher in mpirun oshrun; do
  cat >"$at/bin/$launcher" <<END
#!/bin/bash
echo "\$*" >"$at/$launcher"
while [[ \$1 == -* ]]; do case \$1 in -np) shift 2 ;; *) shift ;; esac; done
exec "\$@"
END
done
chmod +x "$at"/xio-perf "$at"/oshmem_collectives "$at"/plain_shared "$at"/dies "$at"/bin/*

run() { PATH=$at/bin:$PATH XIO_TEST_BENCH_DIR=$at XIO_PERF=$at/xio-perf "$srcdir/bench/vs_oshmem_collectives" "$@" >"$at/out" 2>"$at/err"; }
run 3 4 50 || fail "three runs: status $?, $(cat "$at/err")"
cat >"$at/expected" <<'END'
| op | scope | bytes | XIO us | OpenSHMEM us | OpenSHMEM / XIO | plain us |
|---|---|---|---|---|---|---|
| broadcast | block | 4096 | 7.00 | - | - | 6.50 |
| reduce | block | 8 | 2.00 | 5.00 | 2.50 | - |
| barrier | block | 0 | 8.00 | 2.00 | 0.25 | - |
| broadcast by a root that waits for nobody | block | 8 | - | - | - | 0.03 |
END
diff "$at/expected" "$at/out" || fail 'the table'
[ "$(grep -c '^direct .* -t 1 -n 5 -w 5 --format csv$' "$at/given")" = 15 ] || fail "XIO's program got $(cat "$at/given")"
[ "$(cat "$at/given_plain")" = '4 50' ] || fail "the plain program got $(cat "$at/given_plain")"
[ "$(cat "$at/given_shmem")" = 50 ] || fail "OpenSHMEM's program got $(cat "$at/given_shmem")"
for launcher in mpirun oshrun; do grep -q -- '-np 4' "$at/$launcher" || fail "$launcher got $(cat "$at/$launcher")"; done
for words in 0 x '1 0' '1 2 y'; do refuses "$words" 'is no number from 1 up'; done
mv "$at/dies" "$at/oshmem_collectives"
refuses 1 'oshmem_collectives failed'
grep -q 'no memory' "$at/err" || fail "why it failed: $(cat "$at/err")"
rm "$at/oshmem_collectives"
refuses 1 'oshmem_collectives is missing'
finish vs_oshmem_collectives
