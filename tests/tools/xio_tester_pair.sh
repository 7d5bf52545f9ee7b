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

# of LOG PATTERN...: what the command of that log has said.
of() { out=$(<"$work/$1.log") && says_all "${@:2}"; }
# ended LOG STATUS EXPECTED
ended() {
  out=$(<"$work/$1.log")
  is "the status of $1" "$2" "$3"
}
# logs STATUS LOG COMMAND...
logs() {
  timeout -k 5 120 "${@:3}" >"$work/$2.log" 2>&1
  ended "$2" $? "$1"
}
# nodes EXPECTED-STATUS SERVER-FLAGS CLIENT-FLAGS
nodes() {
  local server client pid
  read -ra server <<<"$2"
  read -ra client <<<"$3"
  port=$((port + 1))
  XIO_TCP_KEY=$key timeout -k 5 120 "$tester" rdma-ep --server --port $port "${server[@]}" >"$work/server.log" 2>&1 &
  pid=$!
  XIO_TCP_KEY=$key logs "$1" client "$tester" rdma-ep --client --server-host localhost --port $port "${client[@]}"
  wait $pid
  ended server $? "$1"
}

nodes 0 '--verify --pingpong-size 4k --pingpong-iters 50' '--verify --pingpong-size 4k --pingpong-iters 50'
of server 'ping-pong of 2 PEs, round trips, emulated' 'verified: 400 blocks good, 0 astray, 0 missing, 0 corrupt'
of client 'the other side' 'verified: 400 blocks good, 0 astray, 0 missing, 0 corrupt'

# Told different things, both say so.
nodes 1 '--pingpong-size 64' '--pingpong-size 128'
of server 'this side has --pingpong-size 64 .* the other side has 128'
of client 'this side has --pingpong-size 128 .* the other side has 64'

# As on two machines: nothing shared but TCP.
export XIO_NIC_EXECUTOR=tcp
nodes 0 '--verify' '--verify'
of server 'over tcp' 'verified: 100 blocks good'
unset XIO_NIC_EXECUTOR

logs 0 xiorun "$builddir/xiorun" -n 3 "$tester" rdma-ep --verify --pingpong-iters 40
of xiorun 'ping-pong of 2 PEs' 'verified: 40 blocks good'
logs 0 xiorun "$builddir/xiorun" -n 2 "$tester" rdma-ep --loopback -n 10 --verify
is 'PEs that put to themselves' "$(grep -c 'rdma-ep put: 10 ops' "$work/xiorun.log")" 2
# For programs: one document a job, with the rows of all PEs. json ROWS PES ARGUMENT...
json() {
  out=$("$builddir/xiorun" -n 3 timeout -k 5 120 "$tester" --json "${@:3}" 2>&1 >"$work/run.log")
  is "the status of --json ${*:3}" $? 0
  checks=$((checks + 1))
  python3 - "$1" "$2" "$work/run.log" <<'END' || wrong "--json ${*:3}: $(<"$work/run.log")"
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
  for side in server client; do of "$side" '"results": \['; done
fi
if has HAVE_MPI; then
  mpirun_np 2 timeout -k 5 120 "$tester" rdma-ep --verify >"$work/mpirun.log" 2>&1
  ended mpirun $? 0
  of mpirun 'ping-pong of 2 PEs' 'verified: 100 blocks good'
else
  echo 'not run: mpirun'
fi

finish
