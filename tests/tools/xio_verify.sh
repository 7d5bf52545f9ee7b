#!/bin/bash
# SPDX-License-Identifier: MIT
# xio-verify as a user calls it: a whole quick run, what is wrong in its surroundings, what it takes out of the report,
# and reports that are read again.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
verify=$builddir/xio-verify
if [ ! -x "$verify" ]; then skip 'this build has no xio-verify: it wants nlohmann-json'; fi
unset "${!XIO_@}" 2>/dev/null
cd "$work" || exit 1
export TMPDIR=$work/tmp
mkdir tmp

limit=300
# of FILE PYTHON: an expression over the report r and its stages s by name.
of() {
  python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
s = {one["name"]: one for one in r["stages"]}
print(eval(sys.argv[2]))' "$1" "$2" 2>&1
}
# Nothing is left of a run but the report, and no process.
clean() { is "left behind after $1" "$(ls -A tmp; pgrep -f "$work" 2>/dev/null)" ''; }

# --- The command line ---
replies 2 "no stage 'ordres'; did you mean|no stage 'ordres'" "$verify" --only ordres
replies 2 '--only and --skip do not go together' "$verify" --only orders --skip drive
replies 2 'no drive by vfio' "$verify" --drive /dev/nvme0
replies 2 'starts itself' "$verify" --pe orders
returns 2 "$verify" --limit 5000
returns 2 "$verify" extra
replies 0 '^orders +.* 180 s' "$verify" --list
is 'all deadlines together' "$(($(awk '{print $(NF - 1)}' <<<"$out" | paste -sd+) <= 1200))" 1

# --- Lanes that a compiler lost, by the text and by what is assembled of it ---
lost_functions() { sed -nE 's/^[^ ]+: ([a-z]+_[a-z]+), .* stands before .*/\1/p' <<<"$out" | sort; }
lanes=$srcdir/tests/device/lost_lanes.asm
are_lost=$(sed -n 's/^\(lost_.*\):$/\1/p' "$lanes" | sort)
returns 1 "$verify" --code-object "$lanes"
is 'lost lanes in text' "$(lost_functions)" "$are_lost"
for clang in clang-22 clang-19 clang-17 clang-15 clang; do
  "$clang" -target amdgcn-amd-amdhsa -mcpu=gfx90a -x assembler -c -o lanes.o "$lanes" 2>/dev/null && break
done
rocm=/opt/rocm/llvm/bin/llvm-objdump
if [ -e lanes.o ] && { [ -e $rocm ] || compgen -c llvm-objdump >/dev/null; }; then
  (printf 'a program'; cat lanes.o lanes.o; echo) >program
  returns 1 "$verify" --code-object program
  is 'lost lanes in a program' "$(lost_functions | uniq)" "$are_lost"
  says ' 224 instructions; .* 28 places, .* 12$'
  if [ ! -e $rocm ]; then
    replies 2 'no llvm-objdump' env PATH=/nowhere "$verify" --code-object lanes.o
  fi
fi
printf '\177ELF .amdgcn_target' >named
echo text >plain
for bad in . nowhere /dev/null named plain; do returns 2 "$verify" --code-object "$bad"; done
says 'has no machine code for AMD GPUs'
echo CCOB >compressed
replies 2 'no-offload-compress' "$verify" --code-object compressed
replies 2 '--code-object reads a file' "$verify" --code-object x --quick
rm -f lanes.o program compressed named plain

# --- Where nothing can be written ---
touch file there.json other.txt
replies 2 'nowhere/r.json cannot be written: No such file' "$verify" --out nowhere/r.json
replies 2 'Not a directory' "$verify" --out file/r.json
replies 2 'is there already' "$verify" --out there.json
replies 2 'other.txt is there already' "$verify" --out other.json
replies 2 'TMPDIR' env TMPDIR=/nowhere "$verify" --out r.json
is 'nothing was written' "$(ls)" $'file\nother.txt\nthere.json\ntmp'

# --- No GPU: a machine whose runtime has none, by an xio-info that says so ---
mkdir bin
cp "$verify" bin/
cat >bin/xio-info <<'END'
#!/bin/sh
case "$*" in
  *--version*) echo '{"build": {"platform": "hip", "commit": "0123456789ab"}}' ;;
  *) echo '{"platform": {"platform": "hip", "gpu_usable": false, "gpu_usable_note": "no ROCm-capable device is detected"}}' ;;
esac
END
chmod +x bin/xio-info
returns 1 bin/xio-verify --out none.json
says 'no GPU can be used: no ROCm-capable device is detected; the report has what else was found'
if command -v python3 >/dev/null; then
  is 'stages without a GPU' "$(of none.json 'set(s[n]["status"] for n in ("orders", "sdma", "cost-rdma"))')" "{'skipped'}"
  is 'verdict without a GPU' "$(of none.json 'r["verdict"]')" incomplete
fi
clean 'a run without a GPU'

if ! has XIO_ENABLE_MODEL; then
  echo "$checks checks, $failures failures; engines are tried on software devices, which this build has not"
  [ "$failures" = 0 ]
  exit
fi
if ! command -v python3 >/dev/null; then skip 'no python3 to look into reports'; fi
if [ "$gpu" != host ] && [ "$(gpus)" = 0 ]; then
  replies 1 'no GPU can be used' "$verify" --quick --out here.json
  echo "$checks checks, $failures failures; no GPU here for the rest"
  [ "$failures" = 0 ]
  exit
fi

# --- A whole run, on a machine and by a user that must not be named ---
host=venom7
user=mallory
mkdir -p home/$user sys/sys/class/infiniband/mlx5_0 sys/sys/class/nvme/nvme0 sys/proc sys/etc \
  sys/sys/class/kfd/kfd/topology/nodes/1
printf 'simd_count 416\nunique_id 12345678901234567\nfw_version 78\nlocation_id 768\n' \
  >sys/sys/class/kfd/kfd/topology/nodes/1/properties
echo '28.39.1002 (0002:c903:0012:3456)' >sys/sys/class/infiniband/mlx5_0/fw_ver
echo 'MT_0000000012 02:1a:2b:3c:4d:5e' >sys/sys/class/infiniband/mlx5_0/board_id
echo 'Some Drive, serial S3VENOM0815' >sys/sys/class/nvme/nvme0/model
echo "6.8.0-$host" >sys/proc/osrelease_unused
mkdir -p sys/proc/sys/kernel && echo "6.8.0 built by $user@$host at 192.168.17.4" >sys/proc/sys/kernel/osrelease
echo 'PRETTY_NAME="Some Linux of fe80::1322:33ff:fe44:5566"' >sys/etc/os-release
names=(HOSTNAME="$host" USER="$user" LOGNAME="$user" HOME="$work/home/$user" XIO_MACHINE="$host.lab")
returns 0 env "${names[@]}" "$verify" --quick --out whole.json --root "$work/sys"
says '^passed: the report is whole.json, and as text whole.txt'
clean 'a whole run'
for report in whole.json whole.txt; do
  is "names in $report" "$(grep -icE "$host|$user|S3VENOM|12345678901234567|192\.168|1322:33ff|c903|02:1a:2b" $report)" 0
  is "this host's name in $report" "$(grep -cwiF "$(hostname | sed 's/^\(localhost\|host\)$/no such name/')" $report)" 0
done
is 'what stands for names' "$(grep -cE '\[host\]|\[user\]|\[serial\]|\[IP address\]|\[hardware address\]' whole.json | sed 's/^[1-9].*/some/')" some
is 'what stays' "$(of whole.json '[row for row in s["machine"]["rows"] if row.get("part") == "gpu of the compute driver"][0]["fw_version"]')" 78
is 'format' "$(of whole.json '(r["format"], r["format_version"], r["verdict"], r["platform"], r["simulated"])')" \
  "('xio-verify report', 1, 'passed', '$gpu', False)"
is 'commit' "$(of whole.json 'len(r["commit"]) >= 7')" True
is 'all stages' "$(of whole.json 'len(s)')" "$("$verify" --list | wc -l)"
is 'stages that failed' "$(of whole.json '[n for n in s if s[n]["status"] not in ("passed", "skipped")]')" '[]'
is 'orders were tried' "$(of whole.json 'sum(row.get("runs", 0) for row in s["orders"]["rows"]) > 1000')" True
is 'forbidden outcomes' "$(of whole.json 'sum(row["weak"] for n in ("orders", "peer-orders") for row in s[n]["rows"] if row.get("weak_outcome") == "forbidden")')" 0
is 'tests of order' "$(of whole.json 'sorted(set(row["test"] for row in s["orders"]["rows"]) - {"all"})')" \
  "['atomic adds', 'coherence', 'load buffering', 'message passing', 'passing on', 'store buffering']"
for engine in direct sdma rdma; do
  is "carrier of $engine" "$(of whole.json "set(row['route'] for row in s['$engine']['rows'] if row['step'] == 'carrier')")" "{'$engine'}"
  is "costs of $engine" "$(of whole.json "len(s['cost-$engine']['rows']) > 5 and all(row['route'] == '$engine' for row in s['cost-$engine']['rows'] if row['test'] == 'put_lat')")" True
done
is 'data of both PEs' "$(of whole.json "set(row['pe'] for row in s['auto']['rows'])")" '{0, 1}'
is 'no folder in commands' "$(of whole.json "[n for n in s if '/' in s[n].get('command', '')]")" '[]'

# --- Stages that hang, crash and lie: by a launcher that does ---
printf '#!/bin/sh\necho begun >&2\nsleep 1000 & sleep 1000\n' >hangs
printf '#!/bin/sh\nkill -SEGV $$\n' >crashes
printf '#!/bin/sh\nexit 0\n' >lies
chmod +x hangs crashes lies
returns 1 "$verify" --quick --only direct --deadline 1 --launcher ./hangs --out hangs.json
says 'direct: timed out: it was not over after 1 s: begun'
is 'status of a stage that hangs' "$(of hangs.json '(s["direct"]["status"], r["verdict"])')" "('timed out', 'incomplete')"
clean 'a stage that hangs'
printf '#!/bin/sh\nenv | grep ^XIO_TCP_ >&2\nexit 9\n' >tells
chmod +x tells
returns 1 env XIO_TCP_RANK=1 XIO_TCP_SIZE=2 XIO_TCP_ROOT=192.0.2.1:1 XIO_TCP_PORTS=20000-20100 \
  "$verify" --quick --only direct --launcher ./tells --out tells.json
says 'direct: failed: exit status 9: XIO_TCP_PORTS=20000-20100$'
replies 1 'direct: crashed: ended by signal 11' "$verify" --quick --only direct --launcher ./crashes --out crashes.json
replies 1 'direct: failed: it ended without a result' "$verify" --quick --only direct --launcher ./lies --out lies.json
returns 1 "$verify" --quick --only direct --launcher ./nowhere --out nowhere.json
says 'direct: failed: its program could not be started: No such file'
# Engines that fail say why.
returns 1 env XIO_MODEL_FAULTS=drop=1 XIO_TIMEOUT_MS=500 "$verify" --quick --only rdma --out faults.json
is 'an engine that loses all' "$(of faults.json 's["rdma"]["status"]')" failed
says 'rdma: failed: [0-9]+ of [0-9]+ rows failed, the first: put'

# --- Interrupted ---
"$verify" --quick --only direct --launcher ./hangs --out stopped.json >stopped.log 2>&1 &
pid=$!
for _ in $(seq 100); do
  if grep -q 'direct: loads' stopped.log; then break; fi
  sleep 0.1
done
kill -INT $pid
wait $pid
is 'status when interrupted' $? 130
is 'report when interrupted' "$(of stopped.json '(r["verdict"], s["direct"]["why"])')" "('incomplete', 'xio-verify was interrupted')"
clean 'an interrupt'

finish
