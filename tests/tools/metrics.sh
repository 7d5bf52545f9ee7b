#!/bin/bash
# SPDX-License-Identifier: MIT
# Files of XIO_METRICS, read strictly by the grammar of OpenMetrics 1.0; and the errors of writing them.
set -uo pipefail
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}"
command -v python3 >/dev/null || skip 'there is no python3 to read the files'
if ! has HAVE_SODIUM || ! has XIO_ENABLE_MODEL; then skip 'this build has no xiorun for PEs, or no software devices'; fi
unset "${!XIO_@}" 2>/dev/null
# shellcheck source=tests/mpi/xiorun_rig.sh
. "$srcdir/tests/mpi/xiorun_rig.sh"
truncate -s 1M "$work/drive \"é\\"
moves=("$xiorun" -n 2 "$builddir/tests/mpi/hang" moves "file:$work/drive \"é\\")
cat >"$work/read.py" <<'END'
import re, sys
label = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
sample = re.compile(rf'([a-zA-Z_:][\w:]*)(?:\{{((?:{label})(?:,{label})*)?\}})? ([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Inf|NaN)')
def metrics(path):
    text, family, about, values = open(path, encoding='utf-8').read(), None, {}, {}
    assert text.endswith('\n# EOF\n') and text.count('# EOF') == 1, 'its end'
    for line in text.split('\n')[:-2]:
        if m := re.fullmatch(r'# (TYPE|UNIT|HELP) (\w+) (.+)', line):
            if m[1] == 'TYPE': assert m[2] not in about and m[3] in ('counter', 'gauge'), line; family = m[2]; about[family] = {}
            assert m[2] == family and m[1] not in about[family], line
            about[family][m[1]] = m[3]
            if m[1] == 'UNIT': assert family.endswith('_' + m[3]), line
            continue
        m = sample.fullmatch(line)
        assert m, f'no sample: {line!r}'
        assert m[1] == family + ('_total' if about[family]['TYPE'] == 'counter' else ''), line
        labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2]))
        key = m[1], tuple(sorted(i for i in labels.items() if i[0] != 'job'))
        assert key not in values and len(labels) == m[2].count('="'), line
        values[key] = float(m[3])
    return {(n, *(f'{k}={v}' for k, v in l)): v for (n, l), v in values.items()}
first, second = metrics(sys.argv[1] + '.0'), metrics(sys.argv[1] + '.1')
ways = 'ctx=ended', 'engine=rdma', 'pe=0', 'peer=1'
assert (first[('xio_ops_total', *ways)], first[('xio_payload_bytes_total', *ways)]) == (5, 40), first
assert 1 <= first[('xio_doorbells_total', *ways)] <= 5 and first[('xio_entries_under_way', *ways)] == 0, first
drive = [(k, v) for k, v in second.items() if k[1].startswith('drive=')]
name = 'drive=file:' + (sys.argv[2] + '/drive "é\\').replace('\\', '\\\\').replace('"', '\\"')
assert (('xio_ops_total', name, 'engine=nvme', 'pe=1', 'storage=1'), 4) in drive, drive
END
# What the strict reader finds; other readers, where they are there, have to take it, too.
look() {
  python3 "$work/read.py" "$@" >"$work/said" 2>&1 || fail 'the files are not as they should be' "$work/said" "$1.0" "$1.1"
  /usr/bin/python3 -c 'import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as f
list(f(open(sys.argv[1]).read()))' "$1.0" 2>&1 | grep -v 'No module' | grep 'Error' && fail 'prometheus_client does not take it'
}
expect counts 0 '' env XIO_ROUTE=rdma XIO_NIC_FAMILY=proxy XIO_METRICS="$work/m:1" "${moves[@]}"
look "$work/m" "$work"

# refused NAME 'PATTERN' FILE [UNDER WHAT...]: one sentence a PE, and the job goes on.
refused() {
  expect "$1" 0 "XIO_METRICS: no counts .*$2" "${@:4}" env XIO_METRICS="$3:1" "${moves[@]}"
  [ "$(grep -c XIO_METRICS "$work/err")" = 2 ] || fail "$1: not one sentence a PE" "$work/err"
}
mkdir "$work/folder.0" "$work/folder.1"
refused 'a folder' 'is no regular file' "$work/folder"
refused 'no folder' 'No such file or directory' "$work/none/m"
expect 'no seconds' 2 "XIO_METRICS='m': give a file and the seconds" env XIO_METRICS=m "${moves[@]}"
if unshare -m true 2>/dev/null; then
  mkdir "$work/full"
  # shellcheck disable=SC2016
  refused 'a full disk' 'No space left' "$work/full/m" unshare -m sh -c \
    'mount -t tmpfs -o size=4k none "$0" && head -c 4096 /dev/zero >"$0/all" && exec "$@"' "$work/full"
fi
finish metrics
