#!/bin/bash
# SPDX-License-Identifier: MIT
# What xio-perf refuses, with which sentence, and how it ends when something fails.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
if [ ! -x "$perf" ]; then skip 'this build has no xio-perf: it wants nlohmann-json'; fi
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then skip 'no AMD GPU here'; fi
unset "${!XIO_@}" 2>/dev/null
export XIO_TIMEOUT_MS=60000

refuses() {
  replies 2 "$1" "$perf" "${@:2}"
  holds "more than one line: ${*:2}" [ "$(wc -l <<<"$out")" = 1 ]
}

# --- Words ---
refuses 'no test was named; see xio-perf --help'
refuses "there is no test 'put_lta'; did you mean put_lat\?" put_lta
refuses "there is no test 'fly'" fly
refuses "there is no test 'put_lta'; did you mean put_lat\?" get_lat,put_lta
refuses "there is no test ''" get_lat,
refuses "'all' stands for every test; leave the other names out" all put_lat
refuses 'the option --itres is not known; did you mean --iters\?' put_lat --itres 5
refuses 'the option -q is not known' put_lat -q
# --- Numbers and sizes ---
for flag in -n -c -t -r; do
  for bad in 0 -1 x 1.5 '' 99999999999999999999 1e3; do refuses "'$bad' is not a number in 1 \.\. " put_bw "$flag" "$bad"; done
done
refuses "'-1' is not a number in 0 \.\. " put_lat -w -1
refuses "'1' is not a number in 2 \.\. " put_lat -f 1
refuses "'1025' is not a number in 1 \.\. 1024" put_lat -t 1025
for flag in -b -e; do
  refuses "'x' is no size; give bytes as" put_lat $flag x
  refuses "'-8' is no size" put_lat $flag -8
  refuses '0 is not in 1 \.\. 4G' put_lat $flag 0
  refuses '5G is not in 1 \.\. 4G' put_lat $flag 5G
done
refuses '--min_size 2k is above --max_size 1k' put_lat -b 2k -e 1k
refuses "--sizes: '' is no size; give bytes as" put_lat --sizes 8,,4k
refuses '--sizes: 5G is not in 1 \.\. 4G' put_lat --sizes 8,5G
for flag in '-b 8' '-e 8' '-f 2'; do
  # shellcheck disable=SC2086  # words
  refuses 'excludes --sizes; see' put_lat --sizes 8 $flag
done
refuses '--iters: 1 required' put_lat -n
# --- Names ---
refuses "'blok' is not one of thread\|wave\|block.*; did you mean block\?" put_lat -s blok
refuses "'' is not one of" put_lat -s thread,
refuses "'fetch_ad' is not one of .*; did you mean fetch_add\?" atomic_lat -a fetch_ad
refuses "'flot' is not one of .*; did you mean float\?" p_lat -d flot
refuses "'char' is not one of" p_lat -d char
refuses "'some' is not one of" put_lat -o some
refuses "'driect' is not one of .*; did you mean direct\?" put_lat --route driect
refuses "'xml' is not one of table\|csv\|json" put_lat --format xml
# --- Combinations ---
refuses '--atomic_op goes with' put_lat -a add
refuses 'fractions are not for' atomic_lat -d double
refuses 'fractions are not for' atomic_bw -d fp16
refuses 'put_bw does not read; --dir goes with get, g and nvme_read' get_bw put_bw --dir read
refuses 'get_lat does not write' get_lat --dir write
refuses "'raed' is not one of write\|read; did you mean read\?" get_lat --dir raed
refuses '--storage goes with' put_lat --storage file:x
refuses '--i-know goes with' nvme_read --i-know
refuses '--bidir is for tests in which one PE sends' barrier --bidir
refuses '--bidir is for tests in which one PE sends' nvme_read --bidir
for value in no false 2; do refuses '--bidir takes no value' put_lat "--bidir=$value"; done
refuses '--lockstep goes with' put_lat --lockstep
refuses '--access goes with' put_lat --access scattered
refuses '--direct goes with' put_lat --direct
refuses '--repeat goes with' put_lat -r 3
refuses 'sdma_copy goes by' sdma_copy --route rdma
refuses 'packets of 6 bytes are not measured' packet_pingpong -b 6 -e 6
refuses 'are no whole waves of' put_bw -s wave -t 33
refuses 'of which [0-9]+ run at the same time' put_bw -c 65535 --lockstep
refuses 'samples do not fit' put_lat -n 10000000 -s block nvme_read -c 1024 -t 1024
refuses 'take more than 4G of memory' nvme_read -b 1G -e 1G
refuses 'a barrier has none' barrier --plot "$work/x.png"
refuses '--wide goes with --format table' put_lat --wide --format csv
refuses 'its folder is not there' put_lat --plot "$work/none/x.png"
mkdir "$work/folder"
refuses '--plot .*/folder: that is no file' put_lat --plot "$work/folder"
echo data >"$work/data"
refuses '--plot .*/data: that file is no PNG' put_lat --plot "$work/data"
mkfifo "$work/fifo"
refuses '--plot .*/fifo: that is no file' put_lat --plot "$work/fifo"
holds '--plot removed a folder' [ -d "$work/folder" ]
holds '--plot removed a pipe' [ -p "$work/fifo" ]
out=$(PATH=/nowhere "$perf" put_lat --plot "$work/x.png" 2>&1)
says 'needs gnuplot'
# A drive is not written over unasked.
head -c 64k /dev/urandom >"$work/drive"
sum=$(sha256sum <"$work/drive")
refuses 'drive has 65536 bytes that no test of XIO.s wrote .*; say --i-know' nvme_write --storage "file:$work/drive"
refuses 'is a drive, and nvme_write would write over what is on it; say --i-know' nvme_write --storage nvme:ffff:1f:1f.7/1
# What only the world, or the drive, tells.
refuses 'put_pingpong takes two PEs and there is one; start it with mpirun -np 2 or xiorun -n 2' put_pingpong
refuses 'has 65536 bytes and the test wants' nvme_read --storage "file:$work/drive" -b 4k -e 4k -t 64
refuses '100 is no multiple of the 512 bytes of a block' nvme_read -b 100 -e 100
holds 'the drive was touched' [ "$sum" = "$(sha256sum <"$work/drive")" ]
replies 2 'p_pingpong takes two PEs and there are 4; start it with mpirun -np 2 or xiorun -n 2' "$start" -n 4 "$perf" p_pingpong
refuses '--reduce_op goes with reduce and reduce_scatter' put_lat,alltoall -o sum
refuses '--team goes with collectives of teams' put_lat barrier sync --team 2
refuses '--team: 0 is not in 1 \.\. 1M' alltoall --team 0
refuses 'a wave or a workgroup calls it, a thread cannot' alltoall -s thread
refuses 'alltoall: --team 2 wants as many PEs and there are 1' alltoall --team 2

# --- Failures are reported, with the engine's own words ---
replies 1 'cannot open .*none' "$perf" nvme_read --storage "file:$work/none"
if [ "$gpu" = host ]; then
  replies 1 'put_lat of 8 bytes: an op returned XIO_ERR_TRANSPORT: rdma queue' \
    env XIO_MODEL_FAULTS=error@3=remote_access "$start" -n 2 "$perf" put_lat --route rdma -e 8
  # Ten million turns behind the first failure would take more than a second of the processor.
  for test in g_lat 'atomic_lat -a fetch' 'atomic_lat -a fetch_add' 'atomic_lat -a compare_swap' 'atomic_lat -a add'; do
    read -ra words <<<"$test"
    for warm_up in 20 10000000; do
      TIMEFORMAT='%U %S'
      { time replies 1 "${words[0]} of 8 bytes: an op returned XIO_ERR_TRANSPORT: rdma queue .*: op 3 failed: remote access error" \
        env XIO_MODEL_FAULTS=error@3=remote_access "$perf" "${words[@]}" --route rdma -w $warm_up; } 2>"$work/$warm_up"
    done
    checks=$((checks + 1))
    awk '{cpu[NR] = $1 + $2} END {exit !(NR == 2 && cpu[2] < cpu[1] + 0.4)}' "$work/20" "$work/10000000" ||
      wrong "$test went on after an op that failed: $(paste -d, "$work/20" "$work/10000000") s of user and system"
  done
  # A time that is over gives way to what the queue says in the end of why nothing came.
  replies 1 'signal_pingpong of 8 bytes: an op returned XIO_ERR_TRANSPORT: rdma queue' env XIO_TIMEOUT_MS=3000 \
    XIO_MODEL_FAULTS=error@3=remote_access "$start" -n 2 "$perf" signal_pingpong --route rdma -n 20
  # The first failure is reported, and not the timeout that follows; and no further op is tried.
  for lost in 3 3/queue0,nvme_lose@4; do
    replies 1 'nvme_read of 4096 bytes: an op returned XIO_ERR_STORAGE: nvme queue' \
      env XIO_TIMEOUT_MS=2000 XIO_MODEL_FAULTS=nvme_error@2=unrecovered_read,nvme_lose@$lost "$perf" nvme_read -w 1 \
      -n 20 -b 4k -e 4k -c 1 -t 2
  done
  replies 1 'nvme_write of 4096 bytes: an op returned XIO_ERR_STORAGE: nvme queue' \
    env XIO_TIMEOUT_MS=2000 XIO_MODEL_FAULTS=nvme_error@1=write_fault,nvme_lose@2 "$perf" nvme_write -w 1 -n 20 -b 4k \
    -e 4k -c 1 -t 1
fi
# Without a deadline only a call that checks its own completion ends before the other PE would have replied. A fence
# between two queue pairs waits for the put, and so reports its status.
if [ "$gpu" = host ]; then
  for pe in 0 1; do
    for scope in thread wave block; do
      replies 1 'put_pingpong of 8 bytes: an op returned XIO_ERR_TRANSPORT: rdma queue' env XIO_TIMEOUT_MS=0 \
        XIO_RDMA_QUEUES=2 XIO_MODEL_FAULTS=error@0=remote_access/pe$pe "$builddir/xiorun" --grace 0.1 -n 2 "$perf" \
        put_pingpong -s $scope --route rdma -e 8 -n 20
    done
  done
fi
# A peer that comes to no further turn: one deadline, not one for each of the turns that are left.
export XIO_TIMEOUT_MS=3000
for test in p_pingpong packet_pingpong 'put_pingpong -s wave' 'put_signal_pingpong -s block' 'barrier -s block'; do
  read -ra words <<<"$test"
  # shellcheck disable=SC2016  # for the inner shell
  replies 1 "${words[0]} of [0-9]+ bytes: an op returned XIO_ERR_TIMEOUT" "$builddir/xiorun" --grace 100 -n 2 sh -c \
    'perf=$1; shift; if [ "$XIO_RUN_PE" = 1 ]; then n=5; else n=200; fi; exec "$perf" "$@" -e 8 -w 1 -n $n' \
    sh "$perf" "${words[@]}"
done
export XIO_TIMEOUT_MS=60000
# By one PE, once.
replies 1 '^xio-perf: cannot make a file /dev/null/none/xio-perf-' env TMPDIR=/dev/null/none "$perf" nvme_read -e 4k -n 2
# shellcheck disable=SC2016  # for the inner shell
replies 1 '^xio-perf: the results could not be written$' sh -c '"$2/xiorun" -n 2 "$1" put_lat -e 8 -n 2 >/dev/full' sh "$perf" "$builddir"
is 'sentences of results that could not be written' "$(grep -c '^xio-perf' <<<"$out")" 1
# shellcheck disable=SC2016  # for the inner shell
replies 1 'results could not be written' sh -c '"$1" put_lat -e 8 -n 2 >/dev/full' sh "$perf"

finish
