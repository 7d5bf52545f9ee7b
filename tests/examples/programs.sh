#!/bin/bash
# SPDX-License-Identifier: MIT
# The examples check their own data; here they are started as their first lines say, and every PE's output is read.
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${start:?}" "${gpu:?}"
if ! grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h"; then skip 'no software devices in this build'; fi
data=$builddir/tests/examples/data
rm -rf "$data"
mkdir -p "$data" || exit 1
runs=0

# launch any|mpirun|alone N PROGRAM...
launch() {
  local how=$1 n=$2
  shift 2
  case $how in
    any) timeout -k 5 100 "$start" -n "$n" "$@" ;;
    alone) timeout -k 5 100 "$@" ;;
    *) mpirun_np "$n" timeout -k 5 100 "$@" ;;
  esac
}

# right HOW N WORDS PROGRAM ARGUMENT...: exits with 0, and each PE says WORDS (a regular expression).
right() {
  local how=$1 n=$2 words=$3 out status
  shift 3
  if [ "$how" = mpirun ] && ! can_mpirun; then
    echo "not run: mpirun is not in this build"
    return
  fi
  out=$(launch "$how" "$n" "$builddir/examples/$1" "${@:2}" 2>&1)
  status=$?
  runs=$((runs + 1))
  if [ $status = 0 ] && [ "$(grep -cE "$words" <<<"$out")" = "$n" ]; then
    echo "ok   ${XIO_ROUTE:+XIO_ROUTE=$XIO_ROUTE }$how -n $n $*"
    return
  fi
  fail "${XIO_ROUTE:+XIO_ROUTE=$XIO_ROUTE }$how -n $n $*: status $status, and each PE was to say '$words'" <(tail -n 20 <<<"$out")
}

# all HOW N: every example but relay on N PEs, with numbers that divide badly where that is allowed.
all() {
  local how=$1 n=$2
  right "$how" "$n" '^PE ([0-9]+) of [0-9]+ got: hello from PE [0-9]+$' hello_put
  right "$how" "$n" ' 0 cells differ from the serial run$' halo 24 11
  right "$how" "$n" '^PE [0-9]+: 0 of 1000 words wrong$' gups 1000 3000
  right "$how" "$n" ' 0 values wrong$' moe_alltoall 37 33
  right "$how" "$n" ' 192 of 192 tokens right$' moe_survivors "$data/weights" 3
  right "$how" "$n" ' 0 values wrong$' two_level_allreduce 40001
  right "$how" "$n" ' 0 values wrong$' stream_allreduce 5000 20
  right "$how" "$n" ' 0 bytes wrong$' kv_fetch "$data/cache" 70 1536
  if [ -e "$data/cache" ]; then fail 'kv_fetch leaves its file behind'; fi
  if has HAVE_JSON; then right "$how" "$n" '^PE [0-9]+: 4 tensors, [0-9] of 3 pieces read here, 0 bytes wrong$' weights "$data/model"; fi
  if [ "$n" = 2 ]; then right "$how" 2 ' 0 words wrong$' ping_pong 1000 200; fi
}
# safetensors FILE HEADER [BYTES]: a file of that header, and random data behind it.
safetensors() {
  printf "$(printf '\\x%02x\\x%02x\\0\\0\\0\\0\\0\\0' $((${#2} % 256)) $((${#2} / 256)))%s" "$2" >"$1"
  head -c "${3-8}" /dev/urandom >>"$1"
}
tensor() { printf '"%s":{"dtype":"%s","shape":%s,"data_offsets":[%s]}' "$@"; }
# The data lie at no page; one tensor is of several pieces, one empty, one a scalar.
safetensors "$data/model" "{\"__metadata__\":{\"format\":\"pt\"},$(tensor wte BF16 '[701,500]' 0,701000),$(tensor none F32 '[0,7]' 701000,701000),$(tensor b I64 '[]' 701000,701008),$(tensor h.0.w F8_E4M3 '[33,3]' 701008,701107)}   " 701107

all any 1
all any 2
all any 4
all mpirun 2
right mpirun 4 ' 0 cells differ from the serial run$' halo 24 11
for XIO_ROUTE in rdma sdma; do
  export XIO_ROUTE
  all any 2
done
unset XIO_ROUTE

# Copy engines by themselves. An example that failed does not report success.
for bytes in 1 65536 4194311; do
  for where in same host; do right alone 1 ' 0 wrong$' sdma_p2p $bytes $where; done
done
if launch alone 1 "$builddir/examples/sdma_p2p" 100 99 >/dev/null 2>&1; then fail 'sdma_p2p to a device that is not there'; fi
for n in 1 2 4; do
  for bytes in 1 1000003; do
    for how in any mpirun; do right $how $n ' 0 bytes wrong$' sdma_allgather $bytes; done
  done
done

# A PE kills itself in step 2, PE 0 too: the others say which experts' weights they have read, and have their tokens right.
outlive() {
  local dead=$1 out status
  out=$(launch any 3 --survive "$builddir/examples/moe_survivors" "$data/weights" 3 2 "$dead" 2>&1)
  status=$?
  runs=$((runs + 1))
  if [ $status = 0 ] && [ "$(grep -cE '^PE [0-9]: 2 of 3 PEs go on, from step 2; experts read:( [0-9]+)+$' <<<"$out")" = 2 ] &&
    [ "$(grep -c ': 192 of 192 tokens right$' <<<"$out")" = 2 ]; then
    echo "ok   ${XIO_ROUTE:+XIO_ROUTE=$XIO_ROUTE }moe_survivors without PE $dead"
    return
  fi
  fail "${XIO_ROUTE:+XIO_ROUTE=$XIO_ROUTE }moe_survivors without PE $dead: status $status" <(tail -n 20 <<<"$out")
}
# Not where PEs that share a GPU wait for its time slices.
if [ "$gpu" = host ]; then
  outlive 2
  XIO_ROUTE=rdma outlive 0
fi

# relay: with sizes that are no multiple of a block, and none at all. PE 0 says how long it took.
for bytes in 0 1 300001; do
  head -c $bytes /dev/urandom >"$data/in"
  for how in any mpirun; do
    if [ $how = mpirun ] && ! can_mpirun; then continue; fi
    rm -f "$data/out"
    out=$(launch $how 2 "$builddir/examples/relay/relay" --in "$data/in" --out "$data/out" --chunk 4096 --slots 5 2>&1)
    status=$?
    runs=$((runs + 1))
    if [ $status = 0 ] && grep -q "^relay: $bytes bytes in " <<<"$out" && cmp "$data/in" "$data/out"; then
      echo "ok   $how -n 2 relay, $bytes bytes"
    else
      fail "$how -n 2 relay, $bytes bytes: status $status: $out"
    fi
  done
done

# ---- called wrongly ----------------------------------------------------------------------------------------------
# wrong WORDS PROGRAM ARGUMENT...: status 2, before anything is started, and a sentence with WORDS.
wrong() {
  local words=$1 out status
  shift
  out=$(timeout -k 5 60 "$builddir/examples/$1" "${@:2}" 2>&1)
  status=$?
  runs=$((runs + 1))
  if [ $status = 2 ] && grep -qF -- "$words" <<<"$out"; then
    echo "ok   refused: $*"
  else
    fail "$*: status $status, not 2, or no word of '$words': $out"
  fi
}
wrong "'now' is one argument too many" hello_put now
wrong "BYTES is 'x'" ping_pong x
wrong 'multiple of 8' ping_pong 12
wrong "ROUNDS is '-1'" ping_pong 64 -1
wrong '1 PEs, but this needs 2' ping_pong
wrong "SIDE is '0'" halo 0
wrong "STEPS is '1e3'" halo 8 1e3
wrong "WORDS is '99999999999999999999999'" gups 99999999999999999999999
wrong "UPDATES is ''" gups 8 ''
wrong "HIDDEN is '0'" moe_alltoall 8 0
wrong 'WIDTH is 3, but must divide the 1 PEs' two_level_allreduce 8 3
wrong 'FILE is missing' kv_fetch
wrong "KILL_AT is '4'" moe_survivors "$data/weights" 3 4
wrong 'PE 0 cannot be killed' moe_survivors "$data/weights" 3 3
wrong "PAGES is '0x10'" kv_fetch "$data/cache" 0x10
wrong 'multiple of 512' kv_fetch "$data/cache" 4 1000
wrong '--in and --out are needed' relay/relay
wrong "--chunk wants a number, not '4k'" relay/relay --in a --out b --chunk 4k
wrong '--chunk must be a multiple of 4096' relay/relay --in a --out b --chunk 4097
wrong '--slots must be 1 to 64' relay/relay --in a --out b --slots 65
wrong "unexpected argument 'c'" relay/relay --in a --out b c
wrong 'unknown or incomplete option' relay/relay --in a --out b --fast
wrong "BYTES is '0'" sdma_allgather 0
wrong "BYTES is 'many'" sdma_p2p many
wrong "DESTINATION is 'there'" sdma_p2p 8 there
if has HAVE_JSON; then
  printf '\377\377\377\377\377\377\377\377{}' >"$data/bad"
  wrong 'its header is longer than the file' weights "$data/bad"
  wrong 'Is a directory' weights "$data"
  while IFS='|' read -r words header; do
    safetensors "$data/bad" "$header"
    wrong "$words" weights "$data/bad"
  done <<END
syntax error|{"a":
key 'dtype' not found|{"a":{}}
cannot use at() with array|[[[[1]]]]
a type that is not known|{$(tensor a F128 '[1]' 0,8)}
no good shape|{$(tensor a F32 '[-2]' 0,8)}
no good shape|{$(tensor a F32 '[4294967296,4294967296]' 0,8)}
offsets beyond the file|{$(tensor a F32 '[2]' 8,16)}
not the bytes of its shape|{$(tensor a F32 '[1]' 0,8)}
tensors overlap|{$(tensor a F32 '[2]' 0,8),$(tensor b F32 '[1]' 4,8)}
a gap, at byte 62|{$(tensor a F32 '[1]' 4,8)}
a gap, at byte 66|{$(tensor a F32 '[1]' 0,4)}
END
fi
# What is there stays as it was.
echo 'not a cache' >"$data/cache"
wrong "'$data/cache' exists" kv_fetch "$data/cache"
wrong "'$data/cache' exists" moe_survivors "$data/cache"
[ "$(cat "$data/cache")" = 'not a cache' ] || fail 'kv_fetch or moe_survivors wrote into a file that was there'
out=$(launch any 3 "$builddir/examples/halo" 16 2>&1)
if [ $? != 2 ] || ! grep -q '3 PEs cannot share it evenly' <<<"$out"; then fail "halo 16 on 3 PEs: $out"; fi

rm -rf "$data"
finish "programs, $runs runs"
