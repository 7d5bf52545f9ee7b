#!/bin/bash
# SPDX-License-Identifier: MIT
# What xio-tester refuses: a sentence, exit status 2, and nothing touched.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
if ! grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h"; then skip 'xio-tester is tried on software devices'; fi
unset "${!XIO_@}" 2>/dev/null
export XIO_BACKEND=model
tester=$builddir/xio-tester

# refused SENTENCE ARGUMENT...
refused() {
  replies 2 "$1" "$tester" "${@:2}"
  is "lines of xio-tester ${*:2}" "$(wc -l <<<"$out")" 1
  says '^xio-tester: .*; see xio-tester .*--help$'
}

new=$work/new
drive=(nvme-ep --controller "file:$new")
printf 'precious' >"$work/precious"

# --- Words ---
refused 'give an endpoint'
refused "'nvme-pe' is not known; did you mean nvme-ep\?" nvme-pe
refused 'the option --controler is not known; did you mean --controller\?' nvme-ep --controler x --write-io 1
refused 'the option --bach-size is not known; did you mean --batch-size\?' "${drive[@]}" --write-io 1 --bach-size 2
refused 'the option --histogramm is not known; did you mean --histogram\?' --histogramm test-ep
refused "'pingpong' is not known; did you mean ping-pong\?" sdma-ep pingpong
refused 'the option --use-flush is not known' sdma-ep p2p --use-flush
refused "'5' is not expected|'5' is not known" test-ep 5
refused 'one endpoint at a time' test-ep nvme-ep
refused "'mlx55' is not known; did you mean mlx5\?" rdma-ep --provider mlx55
refused "'randon' is not known; give random or sequential" "${drive[@]}" --write-io 1 --access-pattern randon

# --- Types and ranges ---
for bad in abc 1k '' 1.5 9223372036854775808 -9223372036854775809; do
  refused "--read-io: '$bad' is not a number in -9223372036854775808 .. 9223372036854775807" "${drive[@]}" --read-io "$bad"
done
for bad in -5 -1 '' 18446744073709551616; do
  refused "--base-lba: '$bad' is not a number in 0 .. 18446744073709551615" "${drive[@]}" --write-io 1 --base-lba "$bad"
done
for bad in -5 4294967296 18446744073709551616 x; do
  refused "--lbas-per-io: '$bad' is not a number in 0 .. 4294967295" "${drive[@]}" --write-io 1 --lbas-per-io "$bad"
  refused "--cq-depth: '$bad' is not a number in 0 .. 4294967295" rdma-ep --cq-depth "$bad"
done
for bad in 2147483648 -2147483649 0x 0x-1 - --1 ' 1' '1 '; do
  refused "--gpu-device: '$bad' is not a number in -2147483648 .. 2147483647" rdma-ep --gpu-device "$bad"
done
# What begins with 0 is no octal number.
refused '--queue-length 1000 cannot be' "${drive[@]}" --write-io 1 --queue-length 01000
refused '--queue-length 255 cannot be' "${drive[@]}" --write-io 1 --queue-length 0xff
refused '--delay 10000000001 cannot be' --delay 10000000001 test-ep
refused '--delay -9223372036854775808 cannot be' test-ep --delay -9223372036854775808
refused "'1q' is no size" "${drive[@]}" --write-io 1 --data-buffer-size 1q
refused "'-1' is no size" rdma-ep --transfer-size -1
refused "--threads: '33' is not a number in 1 .. 32" -t 33 test-ep
refused "--threads: '0' is not a number in 1 .. 32" test-ep --threads 0
refused "--memory-mode: '16' is not a number in 0 .. 15" test-ep -m 16
refused "--memory-mode: '-1' is not a number in 0 .. 15" -m -1 test-ep
refused '--queue-length 1000 cannot be' "${drive[@]}" --write-io 1 --queue-length 1000
refused '--queue-length 65536 cannot be' "${drive[@]}" --write-io 1 --queue-length 65536
refused '--num-queues 0 cannot be' "${drive[@]}" --write-io 1 --num-queues 0
refused '--num-queues 1000 cannot be' "${drive[@]}" --write-io 1 --num-queues 1000
refused '--queue-id 2 cannot be the last of 3 queues' "${drive[@]}" --write-io 1 --num-queues 3 --queue-id 2
refused '--queue-id 65536 cannot be' "${drive[@]}" --write-io 1 --queue-id 65536
refused '--namespace 0 cannot be' "${drive[@]}" --write-io 1 --namespace 0
refused '--batch-size 1024 does not fit a queue' "${drive[@]}" --write-io 1 --batch-size 1024
refused '--batch-size 600 with 2048 bytes an op wants' "${drive[@]}" --write-io 1 --batch-size 600 --lbas-per-io 4
refused 'does not fit --data-buffer-size 512' "${drive[@]}" --write-io 1 --lbas-per-io 2 --data-buffer-size 512
refused 'leave the 131072 blocks' "${drive[@]}" --write-io 1 --base-lba 131072
refused 'leave the 131072 blocks' "${drive[@]}" --write-io 1 --base-lba 18446744073709551615
refused 'leave the 2048 blocks' nvme-ep --controller "file:$new?size=1M" --write-io 1 --base-lba 4096
refused 'leave the 16 blocks' nvme-ep --controller "file:$new?size=64k&block=4k" --write-io 1 --base-lba 16
refused 'leave the 131072 blocks' nvme-ep --controller "file:$new,file:$work/new2" --write-io 1 --base-lba 131072
refused 'leave the 6144 blocks' nvme-ep --controller "file:$new?size=2M,file:$work/new2?size=1536k" --write-io 1 --base-lba 6144
refused 'stripes need equal blocks' nvme-ep --controller "file:$new,file:$work/new2?block=4k" --write-io 1
refused '--file-block-size 1000 cannot be' "${drive[@]}" --write-io 1 --file-block-size 1000
refused '--doorbell 3 is no power of two' test-ep --doorbell 3
refused '--iterations is 0' test-ep -n 0
refused '--sq-depth 100 cannot be' rdma-ep --sq-depth 100
refused '--batch-size 256 does not fit' rdma-ep --batch-size 256
refused '--cq-depth 7 cannot be' rdma-ep --cq-depth 7
refused '--cq-depth 131072 cannot be' rdma-ep --cq-depth 131072
refused 'completion queue of 256 entries: .* from 512 to 65536 \(bnxt\)' rdma-ep --provider bnxt --cq-depth 256
refused 'completion queue of 1024 entries: mlx5 has none' rdma-ep --provider mlx5 --cq-depth 1024
refused 'an entry of mlx5 holds 28 at most' rdma-ep --provider mlx5 --inline-threshold 29
refused 'an entry of bnxt holds 96 at most' rdma-ep --provider bnxt --inline-threshold 97
refused '--num-queues 17 cannot be' rdma-ep --num-queues 17
refused '--transfer-size: 0 is not in' rdma-ep --transfer-size 0
refused '--pingpong-size 20 is no multiple of 8' rdma-ep --pingpong-size 20
refused '--pingpong-size: 8 is not in 16' rdma-ep --pingpong-size 8
refused '--pingpong-iters 0' rdma-ep --pingpong-iters 0
refused '--traffic-class 256' rdma-ep --traffic-class 256
refused '--gpu-device' rdma-ep --gpu-device -1
refused '--device nosuch is not there; this machine has: ' rdma-ep --device nosuch
XIO_BACKEND=auto refused 'cannot open nvme:ffff:1f:1f.7/1: there is no PCI function' nvme-ep --controller ffff:1f:1f.7 --read-io 1
refused '--transfer-size 6 is no multiple of 4' sdma-ep p2p -s 6
refused '--src-gpu 99 is not there' sdma-ep p2p --src-gpu 99
refused '--dst-gpu 99 is not there' sdma-ep p2p --dst-gpu 99
refused '--src-gpu -2 cannot be' sdma-ep p2p --src-gpu -2
for bad in 0 1099511627777; do
  refused "--iterations $bad cannot be; give 1 .. 1099511627776" sdma-ep p2p -n $bad
done

# --- What does not go together ---
refused '--controller is needed' nvme-ep --write-io 1
refused 'nothing is to be done' "${drive[@]}"
refused '--threads is for test-ep' -t 2 "${drive[@]}" --write-io 1
refused '--threads is for test-ep' rdma-ep -t 2
refused '--delay is for test-ep' --delay 5 "${drive[@]}" --write-io 1
refused '--pci-mmio-bridge is for nvme-ep' test-ep --pci-mmio-bridge
refused 'exactly one of --read-io and --write-io' "${drive[@]}" --infinite --read-io 1 --write-io 1
refused '--verify and --infinite' "${drive[@]}" --infinite --read-io 1 --verify
refused '--verify checks what --write-io wrote' "${drive[@]}" --read-io 1 --verify
refused '--verify checks what --read-io reads' "${drive[@]}" --write-io 1 --verify
refused 'cannot check 3 reads of 2 writes' "${drive[@]}" --write-io 2 --read-io 3 --verify
refused '--written goes with --verify' "${drive[@]}" --read-io 1 --written
refused '--infinite and --iterations' rdma-ep --infinite -n 5
refused '--server and --client do not go together' rdma-ep --server --client --server-host x
refused '--client wants --server-host' rdma-ep --client
refused '--server-host goes with --client' rdma-ep --server --server-host x
refused '--port goes with' rdma-ep --port 5
refused '--loopback does not go with' rdma-ep --loopback --server
refused '--loopback and --no-loopback' rdma-ep --loopback --no-loopback
refused '--no-loopback wants another PE' rdma-ep --no-loopback
refused '--batch-size and --num-queues are for loopback' rdma-ep --server --batch-size 4
# A node's first need is TCP, and then the key.
refused 'set the same XIO_TCP_KEY|this libxio has no TCP bootstrap' rdma-ep --server
export XIO_RUN_PE=0
refused '--batch-size and --num-queues are for loopback' rdma-ep --batch-size 4
refused '--infinite is for loopback' rdma-ep --infinite
unset XIO_RUN_PE
refused 'give one of p2p, ping-pong and buffer-reuse' sdma-ep
refused '--use-counter and --use-flush' sdma-ep ping-pong --use-counter --use-flush
refused '--to-host and --dst-gpu' sdma-ep p2p --to-host --dst-gpu 0
refused '--list-endpoints goes without an endpoint' --list-endpoints test-ep
refused '--dump-pattern wants --dump-pattern-size' --dump-pattern "$new"
refused '--dump-pattern-size goes with --dump-pattern' --dump-pattern-size 4k
echo precious >"$new"
refused '--dump-pattern: .*; add --i-know' --dump-pattern "$new" --dump-pattern-size 4k
[ "$(cat "$new")" = precious ] || wrong '--dump-pattern replaced what no test wrote'
rm "$new"
refused '--i-know is for nvme-ep' sdma-ep p2p --i-know
refused 'is no multiple of 8' --dump-pattern "$new" --dump-pattern-size 4k --dump-pattern-block-size 12

# --- What must not be written ---
lost='precious has 8 bytes that no test of XIO.s wrote \(from byte 0 on\), which writes would replace; add --i-know'
refused "$lost" nvme-ep --controller "$work/precious" --write-io 1
refused "$lost" nvme-ep --controller "file:$work/precious" --write-io 1
refused "$lost" nvme-ep --controller "file:$new,file:$work/precious" --write-io 1
refused 'is no file and no NVMe device|it is the kernel.s' nvme-ep --controller file:/proc/self/mem --i-know --write-io 1
# Without file: in front a name says the same: what is opened is the file that was looked at.
: >"$work/precious?size=1M"
refused "$lost" nvme-ep --controller "$work/precious?size=1M" --write-io 1
rm "$work/precious?size=1M"
refused "$lost" nvme-ep --controller "$work/precious?block=4k" --write-io 1
refused 'leave the 2048 blocks' nvme-ep --controller "$work/precious?size=1M" --i-know --write-io 1 --base-lba 4096
refused 'there is no [^?]*; to make a file of that name, give file:.*[?]size=1M' nvme-ep --controller "$work/nothing?size=1M" --write-io 1
refused '"si=1M" is neither block=BYTES nor size=BYTES' nvme-ep --controller "$work/precious?si=1M" --read-io 1
refused 'there is no .*; to make a file of that name, give file:' nvme-ep --controller "$work/nothing" --write-io 1
refused 'is no file and no NVMe device' nvme-ep --controller "$work" --read-io 1
refused 'is no NVMe controller or namespace' nvme-ep --controller /dev/null --write-io 1
refused '/dev/nvme4095n3 cannot be looked at' nvme-ep --controller /dev/nvme4095 --namespace 3 --read-io 1
refused 'is a drive, and writes replace what is on it; add --i-know' nvme-ep --controller nvme:ffff:1f:1f.7/1 --write-io 1
refused 'is a drive' nvme-ep --controller ffff:1f:1f.7 --write-io 1
refused 'is a drive' nvme-ep --controller "file:$new,nvme:ffff:1f:1f.7/1" --write-io 1
refused 'is named twice' nvme-ep --controller "file:$new,file:$new" --write-io 1
refused 'has no path behind it' nvme-ep --controller file: --write-io 1

is 'what is there now' "$(cd "$work" && find . -type f && cat precious)" $'./precious\nprecious'
# What a test wrote is written again unasked, by either tool's pattern and by another block size; one byte of another kind is not.
own=$work/own
for run in "--lfsr-seed 3 --file-block-size 4096" "--lfsr-seed 9"; do
  # shellcheck disable=SC2086  # words
  returns 0 "$tester" nvme-ep --controller "file:$own" --file-size 256k --write-io 40 $run
done
printf x | dd of="$own" bs=1 seek=200001 conv=notrunc status=none
refused 'own has 262144 bytes that no test of XIO.s wrote \(from byte 199680 on\)' nvme-ep --controller "file:$own" --write-io 1
# With the user's word for it, a file is written.
returns 0 "$tester" nvme-ep --controller "$work/precious" --i-know --write-io 1

finish
