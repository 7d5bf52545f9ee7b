#!/bin/bash
# SPDX-License-Identifier: MIT
# Jobs that stand still on purpose: the first line of xio-info --job names the cause. And pages of processes that are no
# PEs of this build: one sentence says so; 128 PEs are drawn within two seconds of CPU time, and 1,000 are. Pictures of several
# hosts are one.
# shellcheck disable=SC2317  # functions that "while_$name" names
set -uo pipefail
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}"
info=$builddir/xio-info
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
if ! has XIO_ENABLE_MODEL; then skip 'this build has no xiorun for PEs, or no software devices'; fi
unset "${!XIO_@}" 2>/dev/null
# shellcheck source=tests/mpi/xiorun_rig.sh
. "$srcdir/tests/mpi/xiorun_rig.sh"
trap 'kill -KILL "$job" 2>/dev/null; rm -rf "$work"' EXIT
job=''
unshared=()
tries=${HANGS_UNDER:+1}20 # a software GPU takes its time: 120
truncate -s 1M "$work/drive"

# hangs NAME N 'FIRST LINE' [SETTING...]: HANGS names those that are to be tried, HANGS_UNDER what starts them.
hangs() {
  local name=$1 n=$2 first=$3 line=
  [[ " ${HANGS:-$name} " == *" $name "* ]] || return 0
  shift 3
  # shellcheck disable=SC2086  # a command and its words
  env XIO_TIMEOUT_MS=$((tries * 3000)) "$@" ${HANGS_UNDER:-} "$xiorun" -n "$n" --grace 0 "$builddir/tests/mpi/hang" "$name" "file:$work/drive" \
    >"$work/out" 2>"$work/err" &
  job=$!
  for _ in $(seq "$tries"); do
    "$info" --job "$job" >"$work/said" 2>&1
    line=$(head -n 1 "$work/said")
    if [[ $line =~ $first ]]; then break; fi
    sleep 0.3
  done
  [[ $line =~ $first ]] || fail "$name: the first line is not /$first/:" "$work/said" "$work/err"
  if declare -F "while_$name" >/dev/null; then "while_$name"; fi
  kill -TERM "$job"
  wait "$job" 2>/dev/null
}
# Of the cycle that hangs now: the other forms, xiorun itself, and another user.
while_cycle() {
  "$info" --job all --json | grep -q '"cause": "a cycle: PE 0' || fail 'JSON has no cause'
  "$info" --job "$job" --graphviz | grep -q '^  pe0 -> pe1 \[label="for PE 1' || fail 'no edge for Graphviz'
  kill -USR1 "$job"
  for _ in {1..50}; do grep -q '^a cycle: PE 0' "$work/err" && break; sleep 0.1; done
  grep -q '^a cycle: PE 0' "$work/err" || fail 'xiorun does not say it for SIGUSR1' "$work/err"
}

# The last ops of each: the op that a host thread still carries, and a call that was refused.
while_queue() {
  "$info" --job "$job" >"$work/said" 2>&1
  grep -qE '^  last of PE 0: write of 8 bytes to PE 1 on queue [0-9]+, under way for [0-9.]+ s$' "$work/said" ||
    fail 'the op under way is not shown' "$work/said"
  "$info" --job "$job" --json | grep -q '"text": "write of 8 bytes to PE 1 on queue' || fail 'JSON has no last ops'
}
while_refused() {
  "$info" --job "$job" >"$work/said" 2>&1
  grep -qE '^  last of PE 0: ctx="1": xio_p .*PE 77' "$work/said" || fail 'the refused call is not shown' "$work/said"
}

# Pages made of that of a PE of the job that hangs now: 128 PEs of a ring, and pages that are wrong.
while_barrier() {
  command -v python3 >/dev/null || return 0
  local mode shown took drawn seen=
  for mode in ring layout noise crowd gone gone gone; do
    [ "$mode$seen" != gonegone ] || break
    rm -f "$work/pages"
    # shellcheck disable=SC2046  # words
    python3 - "$mode" $("$info" --job "$job" --json | sed -n 's/.*"process": \([0-9]*\),/\1/p') >"$work/pages" 2>&1 <<'END' &
import glob, os, random, struct, sys, time
mode, pids = sys.argv[1], sys.argv[2:]
paths = [f for p in pids for f in glob.glob(f'/proc/{p}/fd/*') if os.readlink(f).startswith('/memfd:xio-waits')]
pages = [open(path, 'rb').read() for path in paths]
real, note = next((p, p[i:i + 64]) for p in pages for i in range(4096, 8192, 64) if p[i])
kind, _, now, address, _, _, check = struct.unpack('<I12x6Q', note)
mark = check ^ now ^ address
n = {'ring': 128, 'gone': 128, 'crowd': 1000}.get(mode, 1)
files = [os.memfd_create('xio-waits') for _ in range(n)]
for turn in range(1 << 40):
    for pe, file in enumerate(files):
        page = bytearray(real)
        struct.pack_into('<IIIQ', page, 20, pe, n, n, 4711)
        page[4096:] = random.randbytes(16384) if mode == 'noise' else bytes(16384)
        if mode == 'layout': page[8] ^= 1
        now, since = 10**10 + turn, 79 * 10**8 if pe % 2 else 1  # some came late
        if n > 1:
            struct.pack_into('<IIIIQQQQQQ', page, 4096, kind, (pe + 1) % n, 0, 3, since, now, 64, 5, 4, now ^ 64 ^ mark)
        os.pwrite(file, page, 0)
    if turn == 0: print('ready', flush=True)
    time.sleep(0.01)
END
    shown=$!
    for _ in {1..100}; do grep -qs . "$work/pages" && break; sleep 0.1; done
    if [ "$mode" = gone ]; then (sleep 0.1; kill -KILL "$shown") & fi
    took=$({ TIMEFORMAT='%U %S' && time "$info" --job "$shown" >"$work/said" 2>&1; } 2>&1 | awk '{ print int(1000 * ($1 + $2)) }')
    kill "$shown" 2>/dev/null
    case $mode in
      crowd) grep -q '^a cycle: PE 0 waits for PE 1 waits for PE 2 ' "$work/said" ;;
      # A busy machine may kill them after the last look.
      gone) if grep -qE '^PE 0 has ended: it has no process any more|has ended$' "$work/said"; then seen=gone; else grep -q '^a cycle: PE 0 ' "$work/said"; fi ;;
      ring) grep -q '^a cycle: PE 0 waits for PE 1 waits for PE 2 ' "$work/said" ;;
      layout) grep -q 'another version of XIO' "$work/said" ;;
      noise) grep -q '^nobody waits' "$work/said" ;;
    esac || fail "pages of mode $mode" "$work/said" "$work/pages"
    drawn=$(grep -c '^  PE [0-9]* waits for PE .* to come to barrier 5' "$work/said")
    [ "$mode" != ring ] || [ "$drawn" = 128 ] || fail "only $drawn of 128 PEs were drawn"
    [ "$mode" != crowd ] || [ "$drawn" = 1000 ] || fail "only $drawn of 1,000 PEs were drawn"
    [ "$mode" != ring ] || [ "$took" -lt 2000 ] || fail "128 PEs took $took ms of CPU time"
  done
  [ "$seen" = gone ] || fail 'processes that were killed were never seen as ended'
}

hangs barrier 3 '^PE 2 never came: PE [01] waits for PE 2 to come to barrier [0-9]+ of all, .*PEs 0 and 1 wait for it'
hangs wrong_word 2 '^nobody has set what PE 0 waits for: .*word at heap \+ 0x[0-9a-f]+ to be == 1 \(it holds 0\), by xio_signal_wait_until.* PE 1 waits for PE 0 to come to barrier'
hangs cycle 3 '^a cycle: PE 0 waits for PE 1 waits for PE 2 waits for PE 0: .*xio_team_sync of team'
hangs words 3 '^a cycle of words: each of PEs 0, 1 and 2 '
hangs never_launched 2 '^nobody has set what PE 0 waits for: .*one is in no call that waits \(kernels not launched, .*\): PE 1$'
hangs channel 2 '^two callers of PE 0 are in one channel of a team at once.*team [0-9]+, channel 0'
hangs other_call 2 '^a cycle: PE 0 waits for PE 1 waits for PE 0: PE 0 waits .*xio_reduce.*PE 1 waits for PE 0 to come to barrier'
hangs host 2 '^nobody has set what PE 0 waits for.*PE 1 waits for PE 0 to come to xio_host_barrier'
hangs drive 2 "^PE 1 waits for NVMe queue [0-9]+ of the drive 'file:.*', which has not completed command 2, .*PE 0 waits for it" \
  XIO_MODEL_FAULTS=nvme_lose@2
hangs queue 2 '^PE 0 waits for .* queue [0-9]+ to PE 1, which has completed [0-9]+ entries and not' XIO_ROUTE=rdma \
  XIO_MODEL_FAULTS=delay=1:50s

hangs refused 2 '^nobody has set what PE 0 waits for'
# The same kinds by other calls, PEs and teams.
hangs missing 5 '^PE 3 never came: PE [0-4] waits for PE 3 to come to barrier [0-9]+ of all, .*PEs 0, 1, 2 and 4 wait for it'
hangs gather 5 '^PE 4 never came: PE [12] waits for PE 4 to come to xio_fcollect of 8 bytes of team [0-9]+, channel 0, .*PEs 1 and 2 wait'
hangs root 3 '^PE 1 never came: PE [02] waits for PE 1 to come to xio_broadcast of 8 bytes.*PEs 0 and 2 wait for it'
hangs stream 3 '^PE 1 never came: PE [02] waits for PE 1 to come to xio_reduce of 64 bytes.*PEs 0 and 2 wait for it'
hangs made 3 '^PE 1 never came: PE [02] waits for PE 1 to come to xio_team_create of the host'
hangs immediate 2 '^PE 1 never came: PE 0 waits for an immediate of PE 1'
hangs stopped 3 '^PE 1 is stopped by a signal or a debugger .*PEs 0 and 2 wait for it'
hangs unsent 5 '^nobody has set what PE 0 waits for: .* one is in no call that waits .*: PE 2$'
hangs wrong_pe 3 '^nobody has set what PE 1 waits for: .*word at heap .* by xio_signal_wait_until.* PE [02] waits for PE 1 to come to barrier'
hangs some_words 2 '^nobody has set what PE 1 waits for: .*\(it holds 0\), by xio_wait_until_all.*: PE 0$'
hangs packet 3 '^nobody has set what PE 2 waits for: .*by xio_wait_packet'
hangs swaps 5 '^a cycle: PE 0 waits for PE 1 waits for PE 2 waits for PE 3 waits for PE 4 waits for PE 0: .*xio_alltoall of 8 bytes'
hangs of_host 3 '^a cycle: PE 0 waits for PE [12] waits for PE 0: .*xio_host_barrier'
hangs reduces 3 '^two callers of PE 1 are in one channel of a team at once.*xio_reduce.*team [0-9]+, channel 0'
hangs sync 2 "^PE 1 waits for NVMe queue [0-9]+ of the drive 'file:.*', which has not completed command 1, .*PE 0 waits for it" \
  XIO_MODEL_FAULTS=nvme_lose=1/flush
late=(XIO_ROUTE=rdma XIO_MODEL_FAULTS=delay=1:50s)
hangs fence 3 '^PE 2 waits for .* queue [0-9]+ to PE 0, which has completed 0 entries and not 2' "${late[@]}"
hangs get 2 '^PE 1 waits for .* queue [0-9]+ to PE 0, which has completed 0 entries and not 1' "${late[@]}"
hangs counter 2 '^PE 0 waits for .* queue [0-9]+ to PE 1' "${late[@]}" XIO_NIC_FAMILY=proxy
hangs half 2 "^PE 0's (atomic|write) of 8 bytes to PE 1 on queue [0-9]+ has not come to its end for .*PE 1 waits for the word" \
  XIO_ROUTE=rdma XIO_MODEL_FAULTS=delay=0.5:50s,seed=1
# A fault of the software copy engine, which a software GPU's own have not.
[ -n "${HANGS_UNDER:-}" ] || hangs get 3 '^PE 1 waits for SDMA queue [0-9]+ to PE 0, which has completed 0 entries and not 1' XIO_ROUTE=sdma XIO_MODEL_FAULTS=sdma_delay@0=50s
if [ -n "${HANGS:-}${HANGS_UNDER:-}" ]; then finish hang; fi

# Two hosts, which are PID namespaces: one picture, and one sentence for a host that is not there.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
  cat >"$work/agent" <<AGENT
#!/bin/bash
host=\$1; shift
[ "\$host" != away ] || { echo 'No route to host' >&2; exit 255; }
echo 'welcome'
export XIO_MACHINE=\$host
exec nsenter --target "\$(cat "$work/pid.\$host")" --pid --mount -- "\$@"
AGENT
  chmod 755 "$work/agent"
  for host in a b; do
    unshare --pid --fork --kill-child --mount-proc sleep 1000 &
    unshared+=($!)
    for _ in {1..50}; do pgrep -P "${unshared[-1]}" >"$work/pid.$host" && break; sleep 0.1; done
  done
  trap 'kill -KILL "$job" "${unshared[@]}" 2>/dev/null; rm -rf "$work"' EXIT
  env XIO_TIMEOUT_MS=60000 "$xiorun" --agent "$work/agent" --address 127.0.0.1 -H a:1,b:2 --grace 0 --timeout 15 \
    "$builddir/tests/mpi/hang" barrier >"$work/out" 2>"$work/err" &
  job=$!
  for _ in {1..20}; do
    "$info" --job all --host a,away,b --agent "$work/agent" >"$work/said" 2>&1
    [ "$(grep -c '^  PE [01] waits for PE 2 to come' "$work/said")" = 2 ] && break
    sleep 0.3
  done
  grep -q '^PE 2 never came: PE [01] waits for PE 2 to come to barrier' "$work/said" || fail 'hosts' "$work/said" "$work/err"
  grep -q "^host away: '.*agent' ended with status 255: No route to host$" "$work/said" || fail 'a host that is away' "$work/said"
  [ "$(grep -c '^  PE [01] waits for PE 2 to come' "$work/said")" = 2 ] || fail 'waits of two hosts' "$work/said"
  wait "$job"
  grep -q '^PE 2 never came' "$work/err" || fail 'xiorun says nothing of its hosts' "$work/err"
  kill -KILL "${unshared[@]}"
  expect 'no job on hosts' 1 'No route to host' "$info" --job all --host away --agent "$work/agent"
else
  echo 'not run: pictures of two hosts; this user may make no PID namespaces'
fi
expect 'hosts without a job' 2 '--host goes with --job only' "$info" --host a
expect 'a wrong list of hosts' 2 'the host a is in the list twice' "$info" --job all --host a,a

# When a deadline ends, one PE tells of all, also where those of others have ended at the same moment.
for told in 'barrier 2000 3 PE 2 never came: PE [01] waits for PE 2 to come to barrier' \
  'host 3000 4 .*PE [1-3] waits for PE 0 to come to xio_host_barrier'; do
  read -r name deadline n line <<<"$told"
  XIO_TIMEOUT_MS=$deadline timeout 60 "$xiorun" -n "$n" --timeout 8 --grace 0 "$builddir/tests/mpi/hang" "$name" \
    >"$work/out" 2>"$work/err"
  grep -qE "in vain. As xio-info --job says: $line" "$work/err" || fail "$name: a deadline tells nothing" "$work/err"
  [ "$(grep -c 'in vain' "$work/err")" = 1 ] || fail "$name: told more than once" "$work/err"
done
expect timeout 124 '^PE 2 never came' env XIO_TIMEOUT_MS=60000 "$xiorun" -n 3 --timeout 6 --grace 0 "$builddir/tests/mpi/hang" barrier
expect 'no process' 1 'process 4194999 has ended' "$info" --job 4194999
expect 'no PE' 1 "process $$ is no PE" "$info" --job $$
expect 'no number' 2 'give the number of a process, or all' "$info" --job some
stranger=(setpriv --reuid 65534 --clear-groups)
if "${stranger[@]}" test -x "$info" 2>/dev/null; then
  expect 'of another user' 1 "process $$ is of user 0; ask as that user" "${stranger[@]}" "$info" --job $$
fi

finish hang
