#!/bin/bash
# SPDX-License-Identifier: MIT
# xiorun as a user sees it: environment, exit status, messages, and no process left behind.
# shellcheck disable=SC2016,SC2317  # what the PEs shall expand is in single quotes
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${srcdir:?}" "${xiorun=}" "${work=}"
# shellcheck source=tests/mpi/xiorun_rig.sh
. "$srcdir/tests/mpi/xiorun_rig.sh"

expect 'all well' 0 '' "$xiorun" -n 3 true
expect 'first failure wins' 7 'PE 1 ended with status 7' "$xiorun" -n 3 sh -c '[ "$XIO_TCP_RANK" != 1 ] || exit 7'
expect 'death by signal' 139 'PE 0 was killed by signal 11' "$xiorun" -n 2 sh -c '[ "$XIO_TCP_RANK" != 0 ] || kill -SEGV $$'
expect 'no PEs' 2 "is not a number in 1 .. 1024" "$xiorun" -n 0 true
expect 'too many PEs' 2 "is not a number in 1 .. 1024" "$xiorun" -n 100000 true
expect '-np' 3 'status 3' "$xiorun" -np 2 sh -c 'exit $((XIO_TCP_SIZE + 1))'
expect '-np behind others' 5 'status 5' "$xiorun" --grace 9 --timeout 30 -np 2 sh -c 'exit $#' - -np 3 -n 4 5
expect '-np=' 0 '' "$xiorun" --tag-output -np=2 true
expect '-np without a number' 2 '--np' "$xiorun" -np true
for bad in nan inf -1 x 1s ''; do
  expect 'no time' 2 "'$bad' is not a number of seconds in 0 .. 1000000000" "$xiorun" -n 1 --timeout "$bad" true
  expect 'no grace' 2 "'$bad' is not a number of seconds in 0 .. 3600" "$xiorun" -n 1 --grace "$bad" true
done
expect 'PEs not a number' 2 'xiorun: .*two' "$xiorun" -n two true
expect 'no -n' 2 'is required' "$xiorun" true
expect 'no program' 2 'no program was given' "$xiorun" -n 2
expect 'no program after --' 2 'no program was given' "$xiorun" -n 2 --
expect 'missing program' 2 "program '/no/such' was not found" "$xiorun" -n 2 /no/such
expect 'missing program in PATH' 2 "program 'no-such-program' was not found" "$xiorun" -n 2 no-such-program
# A folder may be searched, and access(2) calls that executable.
mkdir -p "$work/early/true"
expect 'a folder of the same name earlier in PATH' 0 '' env PATH="$work/early:$PATH" "$xiorun" -n 1 true
expect 'a folder as program' 2 "'$work/early' is a folder" "$xiorun" -n 8 "$work/early"
[ "$(wc -l <"$work/err")" = 1 ] || fail 'a folder as program is more than one message'
expect 'unknown option' 2 'option --bogus is not known' "$xiorun" -n 2 --bogus true
expect 'options behind the program are its own' 3 'status 3' "$xiorun" -n 1 sh -c 'exit $#' -n -n --bogus 3
# A limit that kills those that write to a file, here but for the one of what was said.
without_files=(bash -o pipefail -c '(ulimit -f 0; exec "$@") 2>&1 | cat >&2' - "$xiorun")
expect 'no files' 0 '' "${without_files[@]}" -n 2 true
expect 'a PE without files has its signal' 153 'killed by signal 25' "${without_files[@]}" -n 1 sh -c 'kill -s XFSZ $$'
expect 'too few file descriptors' 1 'PE [0-9]* could not be started: Too many open files; raise .*ulimit -n' \
  sh -c 'ulimit -n 16; exec "$@"' - "$xiorun" --tag-output -n 20 true
expect 'a time-out' 124 '2 of 2 PEs still run after 0.3 s' "$xiorun" --timeout 0.3 --grace 0.3 -n 2 sleep 60.1234
expect_none_left 'sleep 60.1234' 'a time-out'

# The others get their grace, then SIGTERM, then SIGKILL; orphans go too.
expect 'stubborn PEs are killed' 5 'PE 1 ended with status 5' "$xiorun" --grace 0.3 -n 3 \
  sh -c '[ "$XIO_TCP_RANK" != 1 ] || exit 5; trap "" TERM INT; while :; do sleep 60.2345; done'
expect_none_left 'sleep 60.2345' 'stubborn PEs'
expect 'orphans of a PE that ended well' 0 '' "$xiorun" -n 2 sh -c '(setsid sleep 60.3456 &) ; exit 0'
expect_none_left 'sleep 60.3456' 'orphans'
SECONDS=0
expect 'PEs may end by themselves in the grace' 5 'PE 1 ended with status 5' "$xiorun" --grace 30 -n 2 \
  sh -c '[ "$XIO_TCP_RANK" != 1 ] || exit 5; sleep 0.2'
[ $SECONDS -lt 10 ] || fail "waited $SECONDS s for nothing"

# The others of a run that outlives its PEs go on; the status is theirs, and 1 where too few are left.
survivor='[ "$XIO_SURVIVE" = 1 ] || exit 9; [ "$XIO_TCP_RANK" != 1 ] || kill -KILL $$; sleep 0.3; exit'
expect 'the others go on' 0 'PE 1 was killed by signal 9' "$xiorun" --survive -n 3 sh -c "$survivor 0"
expect 'a survivor fails' 3 'PE 1 was killed by signal 9' "$xiorun" --survive -n 3 sh -c "$survivor 3"
expect 'none is left' 1 'no PE is left' "$xiorun" --survive -n 2 sh -c 'kill -KILL $$'
expect 'too few are left' 1 '2 of 3 PEs are left, fewer than --min-alive 3' "$xiorun" --survive --min-alive 3 -n 3 \
  sh -c '[ "$XIO_TCP_RANK" != 1 ] || kill -KILL $$; sleep 60.7890'
expect_none_left 'sleep 60.7890' 'too few are left'
expect 'a number without its option' 2 '--min-alive is for --survive' "$xiorun" --min-alive 2 -n 3 true

# Signals are passed on; the status is the PEs'.
for signal in INT TERM; do
  "$xiorun" -n 2 sh -c "trap 'kill \$!; exit 9' $signal; echo ready; sleep 60.4567 & wait" >"$work/out" 2>"$work/err" &
  pid=$!
  for _ in $(seq 200); do [ "$(grep -c ready "$work/out")" = 2 ] && break; sleep 0.05; done
  kill -$signal $pid
  wait $pid
  got=$?
  [ $got = 9 ] || fail "SIG$signal: status $got, expected 9" "$work/err"
done
expect_none_left 'sleep 60.4567' 'signals'

# Killed outright, xiorun takes its PEs along.
"$xiorun" -n 2 sleep 60.5678 &
pid=$!
for _ in $(seq 200); do [ "$(pgrep -fc '^sleep 60.5678')" = 2 ] && break; sleep 0.05; done
kill -KILL $pid
wait $pid 2>/dev/null
sleep 0.3
expect_none_left '^sleep 60.5678' 'xiorun killed'

# With a lease they go on so long, where a world outlives its PEs.
for lease in 60 0.3; do
  rm -f "$work/ended"
  "$xiorun" --survive --lease $lease -n 2 sh -c "echo ready; sleep 1.5680; echo \$XIO_TCP_RANK >>$work/ended" >"$work/out" &
  pid=$!
  for _ in $(seq 200); do [ "$(grep -c ready "$work/out")" = 2 ] && break; sleep 0.05; done
  kill -KILL $pid
  wait $pid 2>/dev/null
  for _ in $(seq 100); do pgrep -f 'sleep 1.5680' >/dev/null || break; sleep 0.1; done
  expect_none_left 'sleep 1.5680' 'a lease'
  [ -e "$work/ended" ] && went_on=60 || went_on=0.3
  [ "$went_on" = "$lease" ] || fail "a lease of $lease s"
done

# xiorun ends all processes that these started, even in other sessions, and even if others of that name were killed.
deep='sh -c "sleep 60.5679; true" & (setsid sleep 60.5679 &) ; env -i setsid sleep 60.5679 & (trap "" HUP TERM INT; sleep 60.5679 & wait); true'
for killed in xiorun 'the process that watches the PEs'; do
  "$xiorun" -n 2 sh -c "$deep" >"$work/out" 2>&1 &
  pid=$!
  for _ in $(seq 200); do [ "$(pgrep -fc '^sleep 60.5679')" = 8 ] && break; sleep 0.05; done
  [ "$(pgrep -fc '^sleep 60.5679')" = 8 ] || fail 'the PEs did not start'
  if [ "$killed" = xiorun ]; then kill -KILL $pid; else kill -KILL "$(pgrep -P $pid)"; fi
  wait $pid 2>/dev/null
  for _ in $(seq 100); do [ "$(pgrep -fc '^sleep 60.5679')" = 0 ] && break; sleep 0.05; done
  expect_none_left '^sleep 60.5679' "descendants after $killed was killed"
done
# A user that kills all processes called xiorun kills one of the two.
PATH=$builddir:$PATH xiorun -n 1 sleep 60.5680 &
pid=$!
for _ in $(seq 200); do [ "$(pgrep -fc '^sleep 60.5680')" = 1 ] && break; sleep 0.05; done
run=$(pgrep -P $pid)
called="$(cat "/proc/$run/comm") $(tr '\0' ' ' <"/proc/$run/cmdline")"
case $called in
  *xiorun*) fail "the run is called $called" ;;
esac
kill $pid
wait $pid

# A shell that becomes xiorun leaves it its children, and children's children that lose their parent meanwhile: they are
# not of this run. The PEs and what those leave behind are, and go with it.
bash -c '(sleep 60.6543 & echo $! >"$1/far"; sleep 0.3) & sleep 60.6544 & echo $! >"$1/near"
  exec "$2" -n 2 sh -c "(setsid sleep 60.6545 &); sleep 0.6; exit 4"' - "$work" "$xiorun" 2>"$work/err"
got=$?
[ $got = 4 ] || fail "beside older children: status $got, expected 4" "$work/err"
expect_none_left '^sleep 60.6545' 'beside older children'
for child in near far; do
  kill "$(cat "$work/$child")" || fail "xiorun killed a process that was there before ($child)"
done
bash -c 'sleep 60.6546 & echo $! >"$1/near"
  exec "$2" -n 2 sh -c "trap '"'kill \$!; exit 9'"' TERM; echo ready; sleep 60.6547 & wait"' - "$work" "$xiorun" >"$work/out" &
pid=$!
for _ in $(seq 200); do [ "$(grep -c ready "$work/out")" = 2 ] && break; sleep 0.05; done
kill -TERM $pid
wait $pid
got=$?
[ $got = 9 ] || fail "SIGTERM beside older children: status $got, expected 9"
bash -c 'sleep 60.6549 & echo $! >"$1/far"; exec "$2" -n 2 sleep 60.6548' - "$work" "$xiorun" &
pid=$!
for _ in $(seq 200); do [ "$(pgrep -fc '^sleep 60.6548')" = 2 ] && break; sleep 0.05; done
kill -KILL $pid
wait $pid 2>/dev/null
sleep 0.3
expect_none_left '^sleep 60.654[78]' 'xiorun killed beside older children'
for child in near far; do
  kill "$(cat "$work/$child")" || fail "a signal ended a process that was there before ($child)"
done

# The environment that the PEs see.
XIO_TCP_KEY_FILE=/nowhere "$xiorun" -n 3 sh -c 'echo "$XIO_TCP_RANK $XIO_RUN_PE $XIO_TCP_SIZE $XIO_TCP_ROOT ${#XIO_TCP_KEY} ${XIO_TCP_KEY_FILE-none}"
  ls -l /proc/$$/fd | grep socket:; true' </dev/null | sort >"$work/out"
root=$(sed -n '1s/.* \(127\.0\.0\.1:[0-9]*\) .*/\1/p' "$work/out")
printf '%s\n' "0 0 3 $root 64 none" "1 1 3 $root 64 none" "2 2 3 $root 64 none" >"$work/expected"
diff "$work/expected" "$work/out" || fail 'environment'
[ "$("$xiorun" -n 1 sh -c 'echo $XIO_TCP_KEY')" != "$("$xiorun" -n 1 sh -c 'echo $XIO_TCP_KEY')" ] || fail 'two runs have one key'
[ "$(echo to-pe-0 | "$xiorun" -n 3 sh -c 'cat')" = to-pe-0 ] || fail 'standard input'

"$xiorun" --tag-output -n 2 sh -c 'echo one; printf "two, no end" >&2' 2>"$work/err" | sort >"$work/out"
printf '[0] one\n[1] one\n' | diff - "$work/out" || fail 'tagged output'
printf '[0] two, no end\n[1] two, no end\n' | diff - <(sort "$work/err") || fail 'tagged error'
timeout 30 "$xiorun" --tag-output -n 2 --grace 0.3 yes 2>/dev/null | head -n 100 >"$work/out"
[ "${PIPESTATUS[0]}" != 124 ] || fail 'PEs go on when nobody reads them'
[ "$(wc -l <"$work/out")" = 100 ] || fail 'tagged output is cut'

# Lines come whole, however long.
"$xiorun" --tag-output -n 2 sh -c 'for n in 70000 300000 5000000; do head -c $n /dev/zero | tr "\0" $XIO_TCP_RANK; echo; done' |
  awk '{ tag = substr($0, 1, 3); pe = substr($0, 5, 1); long = length($0); print tag, pe, long, gsub(pe, "") }' | sort >"$work/out"
for pe in 0 1; do for n in 300000 5000000 70000; do echo "[$pe] $pe $((n + 4)) $((n + 1))"; done; done | diff - "$work/out" || fail 'long lines are broken'

# A reader that takes his time gets every line whole, however short the grace of the PEs.
"$xiorun" --tag-output --grace 0.1 -n 3 sh -c 'seq 50000; exit 3' 2>"$work/err" | { sleep 1; cat; } >"$work/out"
[ "${PIPESTATUS[0]}" = 3 ] || fail 'a slow reader changes the status'
for pe in 0 1 2; do seq 50000 | sed "s/^/[$pe] /"; done | diff -q - <(sort -k 1,1 -s "$work/out") || fail 'a slow reader misses lines'
"$xiorun" --tag-output -n 2 sh -c 'seq -s " " 8000; seq -s " " 8000 >&2' 2>&1 | { sleep 0.5; sort; } >"$work/out"
for pe in 0 0 1 1; do echo "[$pe] $(seq -s ' ' 8000)"; done | diff -q - "$work/out" || fail 'long lines to one pipe are torn'

# One that stands still holds up nobody's end. The shell is that reader: it holds the FIFO and takes nothing.
# expect_end NAME STATUS 'PATTERN ON STANDARD ERROR' SIGNAL COMMAND...
mkfifo "$work/still"
expect_end() {
  local name=$1 status=$2 pattern=$3 signal=$4 pid got
  shift 4
  exec 9<>"$work/still"
  SECONDS=0
  timeout -k 10 20 "$@" >"$work/still" 2>"$work/err" 9>&- &
  pid=$!
  [ -z "$signal" ] || { sleep 2; kill -"$signal" $pid; }
  wait $pid
  got=$?
  exec 9>&-
  if [ $got != "$status" ] || [ $SECONDS -gt 12 ] || { [ -n "$pattern" ] && ! grep -qE -- "$pattern" "$work/err"; }; then
    fail "$name: status $got after $SECONDS s, expected $status soon; standard error, expected /$pattern/:" "$work/err"
  fi
}
tag=("$xiorun" --tag-output --grace 0.3)
limit=("${tag[@]}" --timeout 1)
expect_end 'a time-out before a still reader' 124 '2 of 2 PEs still run after 1 s' '' "${limit[@]}" -n 2 yes
expect_end 'SIGTERM before a still reader' 143 '' TERM "${tag[@]}" -n 2 yes
expect_end 'SIGINT before a still reader, PEs that stay' 137 '' INT "${tag[@]}" -n 2 sh -c 'trap "" INT TERM; yes'
expect_end 'a still reader of both outputs' 124 '' '' sh -c 'exec "$@" 2>&1' - "${limit[@]}" -n 2 yes
expect_end 'a still reader of what the PEs and xiorun write' 124 '' '' \
  sh -c 'exec "$@" 2>&1' - "$xiorun" --grace 0.3 --timeout 1 -n 1 yes
expect_end 'the rest of PEs that ended, and a time-out' 124 'bytes .* dropped' '' "${limit[@]}" -n 1 seq 15000
expect_end 'the rest of PEs that ended, and a signal' 143 'bytes .* dropped' TERM "${tag[@]}" -n 1 seq 15000

# Where the loopback interface has ::1 alone, or is down.
in_a_net() { unshare -n sh -c "$@"; }
if [ "$(id -u)" = 0 ] && in_a_net 'ip link set lo up && ip -4 addr flush dev lo && ip -6 addr show dev lo | grep -q ::1' 2>/dev/null; then
  expect 'only ::1' 0 '' unshare -n sh -c 'ip link set lo up; ip -4 addr flush dev lo; exec "$@"' - "$xiorun" -n 2 \
    sh -c 'case $XIO_TCP_ROOT in "[::1]":*) ;; *) exit 1 ;; esac'
  expect 'a world over ::1' 0 '' unshare -n sh -c 'ip link set lo up; ip -4 addr flush dev lo; exec "$@"' - "$xiorun" -n 2 \
    "$builddir/tests/mpi/bootstrap_probe" worlds tcp
  SECONDS=0
  expect 'lo is down' 1 "lo is down; type 'ip link set lo up'" unshare -n "$xiorun" -n 2 true
  expect 'no address' 1 'neither 127.0.0.1 nor ::1 can be reached' unshare -n sh -c 'ip link set lo up; ip addr flush dev lo
    ip -6 addr flush dev lo; exec "$@"' - "$xiorun" -n 2 true
  [ $SECONDS -lt 10 ] || fail "no loopback is said after $SECONDS s"
else
  echo 'not run: xiorun without 127.0.0.1, which wants root, unshare and ip'
fi

finish xiorun
