#!/bin/bash
# SPDX-License-Identifier: MIT
# Files of XIO_METRICS and XIO_TRACE, read strictly: by the grammar of OpenMetrics 1.0, and as JSON trace events.
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
import json, re, sys, time
label = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
sample = re.compile(rf'([a-zA-Z_:][\w:]*)(?:\{{((?:{label})(?:,{label})*)?\}})? ([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?Inf|NaN)')
def metrics(path):
    text, family, about, values = open(path, encoding='utf-8').read(), None, {}, {}
    assert text.endswith('\n# EOF\n') and text.count('# EOF') == 1, 'its end'
    for line in text.split('\n')[:-2]:
        if m := re.fullmatch(r'# (TYPE|UNIT|HELP) (\w+) (.+)', line):
            if m[1] == 'TYPE': assert m[2] not in about and m[3] in ('counter', 'gauge', 'summary'), line; family = m[2]; about[family] = {}
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
times = [first[('xio_op_seconds', 'pe=0', 'peer=1', f'quantile={q}')] for q in (0.5, 0.9, 0.99)]
assert 0 < times[0] <= times[1] <= times[2] < 10, times
begun, over = float(sys.argv[3]) * 1e6, time.monotonic() * 1e6
for pe in 0, 1:
    name, *events = json.load(open(f'{sys.argv[1]}.json.{pe}'), parse_constant=lambda c: 1 / 0)
    assert name == {'ph': 'M', 'name': 'process_name', 'pid': pe, 'args': {'name': f'PE {pe} of 2'}}, name
    assert all(e['pid'] == pe and begun < e['ts'] <= e['ts'] + e.get('dur', 0) < over for e in events), events
    kinds = {p: {e['id']: e for e in events if e['ph'] == p} for p in 'be'}
    calls = {e['name'] for e in events if e['ph'] == 'X'}
    assert len(events) == sum(e['ph'] == 'X' for e in events) + len(kinds['b']) + len(kinds['e']), events
    assert kinds['b'].keys() == kinds['e'].keys(), kinds
    assert all(kinds['b'][i]['ts'] <= kinds['e'][i]['ts'] for i in kinds['b']), kinds
    assert {'xio_ctx_create', 'xio_finalize'} <= calls, calls
    done = [(e['cat'], e['name'], e['args'].get('for PE'), e['args']['bytes']) for e in kinds['b'].values()]
    assert done == ([('op', 'write', 1, 8)] * 5 if pe == 0 else [('drive', 'read', None, 4096)] * 4), done
END
# What the strict reader finds; other readers, where they are there, have to take it, too.
look() {
  python3 "$work/read.py" "$@" >"$work/said" 2>&1 || fail 'the files are not as they should be' "$work/said" "$1.0" "$1.1"
  /usr/bin/python3 -c 'import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as f
list(f(open(sys.argv[1]).read()))' "$1.0" 2>&1 | grep -v 'No module' | grep 'Error' && fail 'prometheus_client does not take it'
}
begun=$(python3 -c 'import time; print(time.monotonic())')
expect counts 0 '' env XIO_ROUTE=rdma XIO_NIC_FAMILY=proxy XIO_METRICS="$work/m:1" XIO_TRACE="$work/m.json" "${moves[@]}"
look "$work/m" "$work" "$begun"

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
