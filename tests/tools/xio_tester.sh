#!/bin/bash
# SPDX-License-Identifier: MIT
# xio-tester: every endpoint on software devices, what it finds when data is wrong, and what it refuses.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
if ! grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h"; then skip 'xio-tester is tried on software devices'; fi
unset "${!XIO_NVME@}" "${!XIO_NIC@}" "${!XIO_RDMA@}" "${!XIO_SDMA@}" "${!XIO_MODEL@}" XIO_ROUTE XIO_MEMORY_MODE 2>/dev/null
export XIO_BACKEND=model XIO_TIMEOUT_MS=60000
tester=$builddir/xio-tester

# status EXPECTED ARGUMENT...: of xio-tester.
status() { returns "$1" "$tester" "${@:2}"; }
# tells EXPECTED SENTENCE ARGUMENT...: the same, and it says the sentence.
tells() { replies "$1" "$2" "$tester" "${@:3}"; }

# --- Without an endpoint ---
status 0 --list-endpoints
for name in test-ep nvme-ep rdma-ep sdma-ep; do says "^$name "; done
tells 0 "platform $gpu" --info
tells 0 '^sdma-ep ' -l -i
says "platform $gpu"
tells 0 '^xio-tester of XIO [0-9]' --version
tells 0 '--access-pattern' nvme-ep --help

# --- Flags before the endpoint's name ---
tells 0 'verified: 3 blocks good' --write-io 3 --lfsr-seed=7 --verify --read-io 3 nvme-ep --controller "file:$work/before" --i-know
status 0 --controller "file:$work/before" -v nvme-ep --read-io 3
tells 0 'verified: ' --verify --transfer-size 64 rdma-ep -n 3 --loopback
status 0 --verify sdma-ep -n 3 p2p
tells 2 "'test-ep' is not known" --provider test-ep rdma-ep
tells 2 'did you mean --verify\?; see xio-tester rdma-ep --help' --verfy rdma-ep

# --- For programs: one object by each endpoint, also of a run that found something wrong ---
# json EXPECTED TESTS ARGUMENT...
json() {
  checks=$((checks + 1))
  "$tester" --json "${@:3}" >"$work/json" 2>"$work/said"
  [ $? = "$1" ] || wrong "--json ${*:3}"
  python3 - "$1" "$2" "$work/json" <<'EOF' || wrong "the JSON of ${*:3}"
import json, sys
rows = json.load(open(sys.argv[3]))["results"]
order = ["min_us", "median_us", "p95_us", "p99_us", "p999_us", "p9999_us", "max_us"]
assert ",".join(r["test"] for r in rows) == sys.argv[2], rows
for r in rows:
    assert r["timed_ops"] == r["ops"] == r["ops_wanted"] == 10, r
    us = [r[name] for name in order]
    assert us == sorted(us) and us[0] > 0 and us[0] <= r["mean_us"] <= us[-1], r
    assert (r["good"] or 0) > 0 or "write" in r["test"], r
    assert (r["missing"] == 8) == (sys.argv[1] == "1") or r["good"] is None, r
EOF
}
json 0 'test-ep' test-ep -n 10 --verify
json 0 'nvme-ep write,nvme-ep read' nvme-ep --controller "file:$work/json.img" --write-io 10 --read-io 10 --verify
json 0 'rdma-ep put' rdma-ep -n 10 --verify --loopback
for test in 'p2p --verify' ping-pong buffer-reuse; do
  read -ra words <<<"$test"
  json 0 "sdma-ep ${words[0]}" sdma-ep -n 10 "${words[@]}"
done
XIO_MODEL_FAULTS=sdma_skip@3 json 1 'sdma-ep p2p' sdma-ep p2p -n 10 --verify
tells 2 '--json goes with an endpoint' --json --list-endpoints
# Ops that were done before one failed have their times.
XIO_MODEL_FAULTS=nvme_error@150=unrecovered_read status 1 nvme-ep --controller "file:$work/json.img" --write-io 100 --read-io 100 --verify
says 'latency us: .* p99\.99 .*'

# --- Variables that are empty ---
unset_all=(XIO_ROUTE= XIO_HEAP_SIZE= XIO_TIMEOUT_MS= XIO_MEMORY_MODE= XIO_HEAP_KIND= XIO_LOG_LEVEL= XIO_RING_DEPTH= XIO_NIC_FAMILY=
  XIO_HOST_EXEC= XIO_HOST_WAVE= XIO_TCP_ROOT= XIO_RUN_LISTEN_FD= XIO_RUN_PE= XIO_NO_SUCH_NAME=)
returns 0 env "${unset_all[@]}" "$tester" test-ep
silent XIO_

# --- Block devices ---
if [ "$(id -u)" = 0 ] && truncate -s 8M "$work/disk" && loop=$(losetup -f --show "$work/disk" 2>/dev/null); then
  tells 0 '16384 blocks of 512 bytes' nvme-ep --controller "file:$loop" --read-io 5
  tells 2 'is a disk, and writes replace what is on it; add --i-know' nvme-ep --controller "file:$loop" --write-io 5
  [ -z "$(tr -d '\0' <"$work/disk" | head -c 1)" ] || wrong 'a refused write changed the disk'
  tells 0 'verified: 5 blocks good' nvme-ep --controller "file:$loop" --write-io 5 --read-io 5 --verify --i-know
  losetup -d "$loop"
else
  echo 'no loop device: block devices are not tried'
fi

# --- test-ep ---
for how in '' '--doorbell 1' '--doorbell 64' --emulate '--emulate --doorbell 8'; do
  # shellcheck disable=SC2086
  tells 0 'verified: 400 blocks good, 0 astray, 0 missing, 0 corrupt' -t 2 test-ep --verify -n 200 $how
done
status 0 test-ep -n 20 --delay -1000 --seed 9 --verify
status 0 test-ep -n 20 --delay 1000 --emulate

# --- nvme-ep ---
file=$work/drive
status 0 nvme-ep --controller "file:$file" --file-size 2M --write-io 4096 --access-pattern sequential --lfsr-seed 5 \
  --batch-size 0 --verbose
says 'emulated \(model'
says '^nvme-ep write: 4096 ops of 512 bytes'
status 0 --dump-pattern "$work/whole" --dump-pattern-seed 5 --dump-pattern-size 2M
holds 'the file does not hold the pattern' cmp "$file" "$work/whole"
for batch in 0 1 4 16 128; do
  for queues in 1 3; do
    status 0 nvme-ep --controller "file:$file" --write-io 150 --read-io 150 --verify --batch-size "$batch" \
      --num-queues "$queues" --lfsr-seed "$batch" --less-timing
    says "verified: $((150 * queues)) blocks good, 0 astray, 0 missing, 0 corrupt"
  done
done
status 0 --histogram --substep-timing nvme-ep --controller "file:$file" --write-io -20 --read-io 10 --verify \
  --lbas-per-io 32 --queue-length 16 --batch-size 8 --base-lba 100 --access-pattern sequential
says 'verified: 320 blocks good'
says 'sub-steps us/op'
says '#'
says 'negative counts are taken as positive'
status 0 nvme-ep --controller "file:$work/wide" --file-size 4M --file-block-size 4096 --write-io 30 --read-io 30 --verify \
  --data-buffer-size 256k --batch-size 0
says '1024 blocks of 4096 bytes'
# What the name says of the file goes before the flags.
tells 0 '524288 blocks of 512 bytes' nvme-ep --controller "file:$work/named?size=256M" --write-io 1 --base-lba 200000
tells 0 '65792 blocks of 4096 bytes' nvme-ep --controller "file:$work/named?size=257M&block=4096" --write-io 1 --base-lba 65700
tells 0 'bridge' nvme-ep --controller "file:$file" --read-io 10 --pci-mmio-bridge --queue-id 3

status 0 nvme-ep --controller "file:$work/a,file:$work/b" --file-size 2M --write-io 400 --read-io 400 --verify --batch-size 8
says 'verified: 400 blocks good'
tells 0 '12288 blocks of 512 bytes' nvme-ep --controller "file:$work/c?size=4M,file:$work/d?size=3M" --write-io 1 --base-lba 12287

# --- What --verify finds: the same blocks, read again ---
# again EXPECTED SENTENCE
again() { tells "$1" "$2" nvme-ep --controller "file:$file" --read-io 64 --verify --written --access-pattern sequential --lfsr-seed 6; }
status 0 nvme-ep --controller "file:$file" --write-io 64 --access-pattern sequential --lfsr-seed 6
again 0 'verified: 64 blocks good'
cp "$file" "$work/good"
dd if="$work/good" of="$file" bs=512 skip=9 seek=20 count=1 conv=notrunc status=none
again 1 'verified: 63 blocks good, 1 astray, 0 missing, 0 corrupt'
says 'block 20 is astray: the data of block 9'
dd if=/dev/zero of="$file" bs=512 seek=20 count=2 conv=notrunc status=none
again 1 'verified: 62 blocks good, 0 astray, 2 missing, 0 corrupt'
cp "$work/good" "$file"
printf 'x' | dd of="$file" bs=1 seek=5000 conv=notrunc status=none
again 1 'verified: 63 blocks good, 0 astray, 0 missing, 1 corrupt'
says 'block 9 is corrupt'
tells 2 '2097152 bytes that no test of XIO.s wrote \(from byte 4608 on\)' nvme-ep --controller "file:$file" --write-io 1
cp "$work/good" "$file"

tells 0 'note: --file-size has no effect' nvme-ep --controller "file:$file" --read-io 1 --file-size 3M

# A drive that lies: it says that commands are done, and did nothing, or elsewhere.
# lies FAULTS SENTENCE ARGUMENT...
lies() {
  local faults=$1 sentence=$2
  shift 2
  rm -f "$work/lied"
  export XIO_MODEL_FAULTS=$faults
  tells 1 "$sentence" nvme-ep --controller "file:$work/lied" --file-size 1M --write-io 64 --read-io 64 \
    --access-pattern sequential --verify "$@"
  unset XIO_MODEL_FAULTS
}
lies nvme_skip@5/write 'verified: 63 blocks good, 0 astray, 1 missing, 0 corrupt'
says 'first: block 5 is missing'
lies nvme_astray@50=9/write 'verified: 62 blocks good, 1 astray, 1 missing, 0 corrupt'
says 'first: block 9 is astray: the data of block 50 is in its place'
# What the run before left in the file is not taken for this run's, and in random order, too, each op has its own place.
while read -r fault sentence ops words; do
  export XIO_MODEL_FAULTS=$fault
  # shellcheck disable=SC2086
  tells 1 "$sentence" nvme-ep --controller "file:$work/lied" --verify --write-io "$ops" --read-io "$ops" $words
done <<'EOF'
nvme_skip@5/write verified:.63.blocks.good,.0.astray,.0.missing,.1.corrupt;.64.of.64.ops 64 --access-pattern sequential
nvme_skip@9/write verified:.1999.blocks.good,.*;.2000.of.2000.ops 2000
nvme_skip@2000/write .*;.2048.of.2500.ops 2500 --lfsr-seed 3
EOF
lies nvme_skip@70 'verified: 63 blocks good, 0 astray, 1 missing, 0 corrupt'
lies nvme_astray@71=20 'verified: 63 blocks good, 1 astray, 0 missing, 0 corrupt' --batch-size 16
says 'is astray: the data of block 20 is in its place'
lies nvme_skip@3/write/queue1 'verified: 508 blocks good, 0 astray, 4 missing, 0 corrupt' --num-queues 2 --lbas-per-io 4
# The drive's eighth queue is the tester's second.
lies nvme_skip@3/write/queue7 'verified: 508 blocks good, 0 astray, 4 missing, 0 corrupt' --num-queues 2 --lbas-per-io 4 --queue-id 8

# --- rdma-ep ---
for provider in bnxt_re mlx5 pensando rocm-ernic proxy; do
  tells 0 'verified: 720 blocks good, 0 astray, 0 missing, 0 corrupt' rdma-ep --provider $provider --verify -n 40 --transfer-size 3001 --batch-size 7 --num-queues 3
done
tells 0 '^rdma-ep put: 128 ops of 4096 bytes' rdma-ep --verify --verbose --histogram
says 'emulated \(bnxt'
status 0 rdma-ep --transfer-size 1 --batch-size 0 --sq-depth 4 -n 20 --verify --cq-depth 64 --inline-threshold 0

# A NIC that lies.
for provider in bnxt mlx5 ionic ernic proxy; do
  export XIO_MODEL_FAULTS=skip@5
  tells 1 'verified: 127 blocks good, 0 astray, 1 missing, 0 corrupt' rdma-ep --provider $provider --transfer-size 512 --verify
  export XIO_MODEL_FAULTS=astray@6=-512
  tells 1 'verified: 126 blocks good, 1 astray, 1 missing, 0 corrupt' rdma-ep --provider $provider --transfer-size 512 --batch-size 8 --verify
done
unset XIO_MODEL_FAULTS
tells 0 'note: --pingpong-iters has no effect on a loopback' rdma-ep -n 5 --pingpong-iters 3

# --- sdma-ep ---
tells 0 'verified: [0-9]+ blocks good, 0 astray, 0 missing, 0 corrupt; ([0-9]+) of \1 ops' sdma-ep p2p --verify
tells 0 'to the host' sdma-ep -s 1M -n 5 p2p --to-host --verify
for how in '' --use-counter --use-flush; do
  tells 0 'verified: 400 blocks good' sdma-ep -n 50 ping-pong ${how:+"$how"}
  tells 0 'verified: 100 blocks good, .*; 50 of 50 ops' sdma-ep -n 50 buffer-reuse ${how:+"$how"} -s 1k
done

# A copy engine that lies.
# Each op carries its own bytes: one that did nothing is seen, wherever it is, also where the buffers take two at a time.
while read -r n good missing ops words; do
  export XIO_MODEL_FAULTS=sdma_skip@$n
  # shellcheck disable=SC2086
  tells 1 "verified: $good blocks good, 0 astray, $missing missing, 0 corrupt; $ops of $ops ops" sdma-ep -n "$ops" $words
done <<'EOF'
0 0 8 1 p2p --verify
1 72 8 10 p2p --verify
9 72 8 10 p2p --verify
1 262144 65536 5 -s 32M p2p --verify
4 262144 65536 5 -s 32M buffer-reuse
37 78 2 40 -s 1k buffer-reuse
EOF
export XIO_MODEL_FAULTS=sdma_skip@3
tells 1 'verified: 78 blocks good, 2 astray, 0 missing, 0 corrupt' sdma-ep -n 40 -s 1k ping-pong
says 'first: block 6 is astray: the data of block 4 is in its place'
unset XIO_MODEL_FAULTS

# --- Memory modes ---
if [ "$gpu" = host ]; then
  for mode in $(seq 0 15); do
    status 0 -m "$mode" test-ep -n 20 --verify --doorbell 4
    status 0 nvme-ep --controller "file:$file" --write-io 20 --read-io 20 --verify -m "$mode"
    status 0 rdma-ep --verify -n 20 -m "$mode"
  done
fi

# --- Ctrl-C leaves a summary ---
interrupted() {
  local expected=$1 pid got log=$work/log.$checks
  shift
  # A log of its own: what an earlier run said is not to be taken for this one's beginning.
  : >"$log"
  "$tester" --verbose "$@" >"$log" 2>&1 &
  pid=$!
  for _ in $(seq 600); do
    if grep -q ': begins$' "$log" || ! kill -0 $pid 2>/dev/null; then break; fi
    sleep 0.1
  done
  kill -INT $pid
  wait $pid
  got=$?
  out=$(cat "$log")
  holds "status $got and not $expected after SIGINT: $*" [ $got = "$expected" ]
  says 'ended by a signal'
}
# A shell starts what runs in the background with SIGINT ignored, and the tester handles it all the same.
interrupted 0 nvme-ep --controller "file:$file" --read-io 1 --infinite
interrupted 0 nvme-ep --controller "file:$file" --write-io 1 --infinite --batch-size 16 --num-queues 2
interrupted 130 nvme-ep --controller "file:$file" --read-io 1000000000
interrupted 0 rdma-ep --infinite
interrupted 130 sdma-ep -n 1000000000 ping-pong
interrupted 130 test-ep -n 8000000000
interrupted 130 -t 2 test-ep -n 8000000000 --emulate --doorbell 4

finish
