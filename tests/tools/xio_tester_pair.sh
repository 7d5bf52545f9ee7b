#!/bin/bash
# SPDX-License-Identifier: MIT
# rdma-ep between two PEs: as two nodes, under xiorun and under mpirun.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
if ! has XIO_ENABLE_MODEL; then skip 'two nodes want the software NIC'; fi
unset "${!XIO_@}" 2>/dev/null
export XIO_BACKEND=model XIO_TIMEOUT_MS=60000
tester=$builddir/xio-tester
key=0123456789abcdef0123456789abcdef
port=$((20000 + RANDOM % 20000))

# expect NAME STATUSES FILE PATTERN...
expect() {
  local name=$1 file=$2 pattern
  shift 2
  for pattern in "$@"; do
    checks=$((checks + 1))
    if grep -qE -- "$pattern" "$file"; then continue; fi
    echo "FAIL $name: not said: $pattern"
    sed 's/^/  /' "$file"
    failures=$((failures + 1))
  done
}
ended() {
  checks=$((checks + 1))
  if [ "$2" = "$3" ]; then return; fi
  echo "FAIL $1: status $2 and not $3"
  sed 's/^/  /' "$work"/*.log
  failures=$((failures + 1))
}
# nodes EXPECTED-STATUS SERVER-FLAGS CLIENT-FLAGS
nodes() {
  local expected=$1 server client pid
  read -ra server <<<"$2"
  read -ra client <<<"$3"
  port=$((port + 1))
  rm -f "$work"/*.log
  XIO_TCP_KEY=$key timeout -k 5 120 "$tester" rdma-ep --server --port $port "${server[@]}" >"$work/server.log" 2>&1 &
  pid=$!
  XIO_TCP_KEY=$key timeout -k 5 120 "$tester" rdma-ep --client --server-host localhost --port $port "${client[@]}" \
    >"$work/client.log" 2>&1
  ended 'the client' $? "$expected"
  wait $pid
  ended 'the server' $? "$expected"
}

nodes 0 '--verify --pingpong-size 4k --pingpong-iters 50' '--verify --pingpong-size 4k --pingpong-iters 50'
expect server "$work/server.log" 'ping-pong of 2 PEs, round trips, emulated' \
  'verified: 400 blocks good, 0 astray, 0 missing, 0 corrupt'
expect client "$work/client.log" 'the other side' 'verified: 400 blocks good, 0 astray, 0 missing, 0 corrupt'

# Told different things, both say so.
nodes 1 '--pingpong-size 64' '--pingpong-size 128'
expect server "$work/server.log" 'this side has --pingpong-size 64 .* the other side has 128'
expect client "$work/client.log" 'this side has --pingpong-size 128 .* the other side has 64'

# As on two machines: nothing shared but TCP.
export XIO_NIC_EXECUTOR=tcp
nodes 0 '--verify' '--verify'
expect server "$work/server.log" 'over tcp' 'verified: 100 blocks good'
unset XIO_NIC_EXECUTOR

rm -f "$work"/*.log
timeout -k 5 120 "$builddir/xiorun" -n 3 "$tester" rdma-ep --verify --pingpong-iters 40 >"$work/run.log" 2>&1
ended xiorun $? 0
expect xiorun "$work/run.log" 'ping-pong of 2 PEs' 'verified: 40 blocks good'
rm -f "$work"/*.log
timeout -k 5 120 "$builddir/xiorun" -n 2 "$tester" rdma-ep --loopback -n 10 --verify >"$work/run.log" 2>&1
ended 'xiorun --loopback' $? 0
checks=$((checks + 1))
if [ "$(grep -c 'rdma-ep put: 10 ops' "$work/run.log")" != 2 ]; then
  echo 'FAIL xiorun --loopback: not both PEs put to themselves'
  failures=$((failures + 1))
fi
# For programs: one document a job, with the rows of all PEs. json ROWS PES ARGUMENT...
json() {
  timeout -k 5 120 "$builddir/xiorun" -n 3 "$tester" --json "${@:3}" >"$work/run.log" 2>"$work/said.log"
  ended "--json ${*:3}" $? 0
  checks=$((checks + 1))
  python3 - "$1" "$2" "$work/run.log" <<'END' || { failures=$((failures + 1)); cat "$work/run.log"; }
import json, sys
rows = json.load(open(sys.argv[3]))["results"]
assert len(rows) == int(sys.argv[1]) and ",".join(str(r["pe"]) for r in rows) == sys.argv[2], rows
assert all(r["failure"] is None and r["ops"] == r["ops_wanted"] for r in rows), rows
END
}
if command -v python3 >/dev/null; then
  json 2 0,1 rdma-ep --pingpong-iters 20
  json 3 0,1,2 rdma-ep --loopback -n 10
  json 3 0,1,2 test-ep -n 10
  nodes 0 '--json' '--json'
  for side in server client; do expect "$side" "$work/$side.log" '"results": \['; done
fi
if has HAVE_MPI; then
  rm -f "$work"/*.log
  mpirun_np 2 timeout -k 5 120 "$tester" rdma-ep --verify >"$work/run.log" 2>&1
  ended mpirun $? 0
  expect mpirun "$work/run.log" 'ping-pong of 2 PEs' 'verified: 100 blocks good'
else
  echo 'not run: mpirun'
fi

finish
