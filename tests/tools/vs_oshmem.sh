#!/bin/bash
# SPDX-License-Identifier: MIT
# bench/vs_oshmem over programs that only pretend to measure: medians, the ratios, memcpy as the ceiling, and what is refused.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
# shellcheck source=tests/tools/bench_rig.sh
. "$srcdir/tests/tools/bench_rig.sh"
# Times 30 10 20 of an 8-byte put in three runs; get only here, barrier in both.
cat >"$at/rma" <<END
#!/bin/bash
n=\$(cat "$at/count" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$at/count"
times=(30 10 20)
printf '%s\n' '# op bytes ns' "put 8 \${times[n % 3]}" 'memcpy 8 5' 'get 64 7' 'barrier 0 100'
END
printf '%s\n' '#!/bin/bash' "printf '%s\n' 'put 8 50' 'barrier 0 25'" >"$at/oshmem_rma"
printf '%s\n' '#!/bin/bash' "echo 'put 8 50'" "echo 'no memory' >&2" 'exit 1' >"$at/dies"
# Launchers: the program is their last word.
mkdir "$at/bin"
# shellcheck disable=SC2016
for launcher in mpirun oshrun; do printf '%s\n' '#!/bin/bash' 'exec "${@: -1}"' >"$at/bin/$launcher"; done
chmod +x "$at"/rma "$at"/oshmem_rma "$at"/dies "$at"/bin/*

run() { PATH=$at/bin:$PATH XIO_TEST_BENCH_DIR=$at "$srcdir/bench/vs_oshmem" "$@" >"$at/out" 2>"$at/err"; }
run 3 || fail "three runs: status $?, $(cat "$at/err")"
cat >"$at/expected" <<'END'
| op | bytes | XIO ns | OpenSHMEM ns | OpenSHMEM / XIO | memcpy ns | memcpy / XIO |
|---|---|---|---|---|---|---|
| put | 8 | 20.0 | 50.0 | 2.50 | 5.0 | 0.25 |
| get | 64 | 7.0 | - | - | | |
| barrier | 0 | 100.0 | 25.0 | 0.25 | | |
END
diff "$at/expected" "$at/out" || fail 'the table'
for runs in 0 x; do refuses "$runs" 'is no number from 1 up'; done
mv "$at/dies" "$at/oshmem_rma"
refuses 1 'oshmem_rma failed'
grep -q 'no memory' "$at/err" || fail "why it failed: $(cat "$at/err")"
rm "$at/oshmem_rma"
refuses 1 'oshmem_rma is missing'
finish
