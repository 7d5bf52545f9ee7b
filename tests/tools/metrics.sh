#!/bin/bash
# SPDX-License-Identifier: MIT
# Files of XIO_METRICS and XIO_TRACE, and xio-info --metrics, read strictly: by the grammar of OpenMetrics 1.0, and as
# JSON trace events. Ranges for profilers.
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
        twice = len(sys.argv) > 2 and sys.argv[2] == 'twice'
        key = m[1], tuple(sorted(i for i in labels.items() if twice or i[0] != 'job'))
        assert key not in values and len(labels) == m[2].count('="'), line
        values[key] = float(m[3])
    return {(n, *(f'{k}={v}' for k, v in l)): v for (n, l), v in values.items()}
if sys.argv[2] in ('live', 'twice'):
    found = metrics(sys.argv[1])
    ops = sorted((dict(i.split('=', 1) for i in k[1:])['pe'], v) for k, v in found.items()
                 if k[0] == 'xio_ops_total' and 'engine=rdma' in k)
    # The first world's five ops and the second's; or two PEs, of which one has sent something.
    assert [v for pe, v in ops if v] == ([1, 5] if sys.argv[2] == 'twice' else [1]), found
    assert {pe for pe, v in ops} == ({'0'} if sys.argv[2] == 'twice' else {'0', '1'}), found
    sys.exit()
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
    assert done == ([('op', 'op write', 1, 8)] * 5 if pe == 0 else [('drive', 'drive read', None, 4096)] * 4), done
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

# Two worlds of a process have one file, which has the counts of both.
expect 'two worlds' 0 '' env XIO_ROUTE=rdma XIO_NIC_FAMILY=proxy XIO_METRICS="$work/two:1" "${moves[@]/%moves/twice}"
python3 "$work/read.py" "$work/two.0" twice >"$work/said" 2>&1 || fail 'two worlds' "$work/said" "$work/two.0"

# Queue pairs that are made one after the other count as those that are made at once.
for how in eager lazy; do
  expect "$how counts" 0 '' env XIO_ROUTE=rdma XIO_CONNECT=$how XIO_METRICS="$work/$how:60" "$xiorun" -n 3 "$builddir/tests/mpi/first_use"
  awk '/^xio_ops_total/ { ops += $NF } END { print ops }' "$work/$how".? >"$work/$how"
done
diff "$work/eager" "$work/lazy" >"$work/said" || fail 'ops are counted twice, or not' "$work/said"

# Live processes that were not told to write anything; one that is stopped tells nothing.
if [ -x "$builddir/xio-info" ]; then
  env XIO_TIMEOUT_MS=60000 XIO_ROUTE=rdma XIO_MODEL_FAULTS=delay=1:50s "$xiorun" -n 2 --grace 0 \
    "$builddir/tests/mpi/hang" queue >"$work/out" 2>"$work/err" &
  job=$!
  trap 'kill -KILL $job 2>/dev/null; rm -rf "$work"' EXIT
  for _ in {1..30}; do
    "$builddir/xio-info" --metrics $job >"$work/live" 2>"$work/said" && python3 "$work/read.py" "$work/live" live 2>>"$work/said" && break
    sleep 0.3
  done
  python3 "$work/read.py" "$work/live" live || fail 'live counts' "$work/live" "$work/said"
  one=$("$builddir/xio-info" --job $job --json | sed -n 's/.*"process": \([0-9]*\),/\1/p' | tail -n 1)
  kill -STOP "$one"
  expect 'a stopped PE' 0 "process $one is stopped by a signal or a debugger" "$builddir/xio-info" --metrics $job
  kill -CONT "$one"
  kill -TERM $job
  wait $job 2>/dev/null
  expect 'no PE for counts' 1 "process $$ is no PE" "$builddir/xio-info" --metrics $$
  expect 'no number for counts' 2 '--metrics some: give the number of a process, or all' "$builddir/xio-info" --metrics some
fi

# A kernel's wait is in the trace, on the timeline of the call that ended it.
expect 'a wait' 0 '' env XIO_TRACE="$work/late.json" "$xiorun" -n 2 "$builddir/tests/mpi/hang" late
python3 - "$work/late.json.0" >"$work/said" 2>&1 <<'END' || fail 'a wait of 0.4 s is not in the trace' "$work/said" "$work/late.json.0"
import json, sys
events = json.load(open(sys.argv[1]))
waits = {e['id']: e for e in events if e.get('cat') == 'wait' and e['ph'] == 'b'}
ends = {e['id']: e for e in events if e.get('cat') == 'wait' and e['ph'] == 'e'}
calls = [e for e in events if e['ph'] == 'X' and e['name'] == 'xio_host_barrier']
[(key, wait)] = [(k, w) for k, w in waits.items() if w['name'] == 'wait xio_signal_wait_until']
took = (ends[key]['ts'] - wait['ts']) / 1e3
assert 250 < took < 5000, took
# Between the barriers before it and behind it, as far as its clock is compared well.
assert calls[0]['ts'] - 20e3 < wait['ts'] and ends[key]['ts'] < calls[-1]['ts'] + calls[-1]['dur'] + 20e3, (wait, calls)
END

# Ranges, by libraries that write them down.
if command -v "${CC:-cc}" >/dev/null; then
  cat >"$work/ranges.c" <<'END'
#include <stdio.h>
static int say(const char* what, const char* name) { return fprintf(stderr, "%s %s\n", what, name) > 0; }
int roctxRangePushA(const char* name) { return say("roctx push", name); }
int roctxRangePop(void) { return say("roctx", "pop"); }
static int push(const char* name) { return say("nvtx push", name); }
static int pop(void) { return say("nvtx", "pop"); }
struct callbacks { size_t size; int (*table)(int, void (****)(void), unsigned*); };
int InitializeInjectionNvtx2(const void* (*export)(unsigned)) {
  const struct callbacks* c = export(1);
  void (***table)(void) = NULL;
  unsigned size = 0;
  if (c->size < sizeof *c || c->table(5, &table, &size) != 1 || c->table(1, &table, &size) != 1 || size < 12) return 0;
  *table[9] = (void (*)(void))push;
  *table[11] = (void (*)(void))pop;
  return 1;
}
END
  "${CC:-cc}" -shared -fPIC "$work/ranges.c" -o "$work/libroctx64.so" || fail 'no library for ranges'
  expect ranges 0 'roctx push xio_ctx_create' env XIO_TRACE=ranges LD_LIBRARY_PATH="$work" \
    NVTX_INJECTION64_PATH="$work/libroctx64.so" "$xiorun" -n 2 "$builddir/tests/mpi/hang" late
  for one in roctx nvtx; do
    grep -q "$one push xio_finalize" "$work/err" || fail "no ranges of $one" "$work/err"
    [ "$(grep -c "$one push" "$work/err")" = "$(grep -c "$one pop" "$work/err")" ] || fail "ranges of $one" "$work/err"
  done
  [ ! -e ranges ] || fail 'a file called ranges was made'
fi
expect 'no ranges' 0 'XIO_TRACE=ranges: nothing here takes ranges: no roctx' env XIO_TRACE=ranges "$xiorun" -n 2 "$builddir/tests/mpi/hang" late

# refused NAME 'PATTERN' FILE [UNDER WHAT...]: one sentence a PE, and the job goes on.
refused() {
  expect "$1" 0 "XIO_METRICS: no counts .*$2" "${@:4}" env XIO_METRICS="$3:1" "${moves[@]}"
  [ "$(grep -c XIO_METRICS "$work/err")" = 2 ] || fail "$1: not one sentence a PE" "$work/err"
}
mkdir "$work/folder.0" "$work/folder.1"
echo data | tee "$work/keep.0" >"$work/keep.1"
refused 'a file of others' 'data of another kind' "$work/keep"
expect 'a trace over others' 0 'XIO_TRACE: .*data of another kind' env XIO_TRACE="$work/keep" "${moves[@]}"
[ "$(cat "$work"/keep.?)" = $'data\ndata' ] || fail 'data of others were replaced'
refused 'a folder' 'is no regular file' "$work/folder"
refused 'no folder' 'No such file or directory' "$work/none/m"
expect 'no seconds' 2 "XIO_METRICS='m': give a file and the seconds" env XIO_METRICS=m "${moves[@]}"
if unshare -m true 2>/dev/null; then
  mkdir "$work/full"
  # shellcheck disable=SC2016
  refused 'a full disk' 'No space left' "$work/full/m" unshare -m sh -c \
    'mount -t tmpfs -o size=4k none "$0" && head -c 4096 /dev/zero >"$0/all" && exec "$@"' "$work/full"
  # shellcheck disable=SC2016
  expect 'a full disk for a trace' 0 'XIO_TRACE: no trace of this PE is written: .*No space left' unshare -m sh -c \
    'mount -t tmpfs -o size=4k none "$0" && head -c 4096 /dev/zero >"$0/all" && XIO_TRACE="$0/t" exec "$@"' "$work/full" "${moves[@]}"
fi
finish metrics
