#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/vs_oshmem over programs that only pretend to measure: medians, the ratios, rows of one side alone, and what is refused.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/tools/bench_rig.sh
. "$srcdir/tests/tools/bench_rig.sh"
# Times 3 1 2 of an 8-byte put in three runs; get only here, barrier in both.
cat >"$at/xio-perf" <<END
#!/bin/bash
echo '$head'
if [ "\$1" = barrier ]; then echo '$(row barrier thread 0 10)'; fi
[ "\$*" = 'put_bw get_bw -s thread -c 1 -t 1 -b 8 -e 1K -n 100000 --format csv' ] || exit 0
n=\$(cat "$at/count" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$at/count"
times=(3 1 2)
echo "put_bw,,thread,8,1,1,5,5,0.1,\${times[n % 3]},9"
echo '$(row get_bw thread 64 7)'
END
printf '%s\n' '#!/bin/bash' "echo '$(row put_bw thread 8 5)'" "echo '$(row barrier thread 0 2.5)'" >"$at/oshmem_rma"
printf '%s\n' '#!/bin/bash' "echo '$(row put_bw thread 8 5)'" "echo 'no memory' >&2" 'exit 1' >"$at/dies"
# Launchers: options with their words, the program, and its arguments.
mkdir "$at/bin"
# shellcheck disable=SC2016
for launcher in mpirun oshrun; do
  printf '%s\n' '#!/bin/bash' 'while [[ $1 == -* ]]; do case $1 in -np) shift 2 ;; *) shift ;; esac; done' 'exec "$@"' >"$at/bin/$launcher"
done
chmod +x "$at"/xio-perf "$at"/oshmem_rma "$at"/dies "$at"/bin/*

export XIO_PERF=$at/xio-perf OSHMEM_RMA=$at/oshmem_rma
run() { PATH=$at/bin:$PATH "$srcdir/bench/vs_oshmem" "$@" >"$at/out" 2>"$at/err"; }
run 3 || fail "three runs: status $?, $(cat "$at/err")"
cat >"$at/expected" <<'END'
| test | scope | bytes | XIO, us | OpenSHMEM, us | OpenSHMEM / XIO |
|---|---|---|---|---|---|
| put_bw | thread | 8 | 2 | 5 | 2.50 |
| barrier | thread | 0 | 10 | 2.5 | 0.25 |

2 rows, geometric mean 0.79, 1 below 1; 1 rows of one of them alone are left out
END
diff "$at/expected" "$at/out" || fail 'the table'
for runs in 0 x; do refuses "$runs" 'is no number from 1 up'; done
OSHMEM_RMA=$at/dies refuses 1 'oshmem_rma failed'
grep -q 'no memory' "$at/err" || fail "why it failed: $(cat "$at/err")"
OSHMEM_RMA=$at/none refuses 1 'none is missing'
finish vs_oshmem
