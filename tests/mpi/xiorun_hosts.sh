#!/bin/bash
# SPDX-License-Identifier: MIT
# xiorun on several hosts, by agents that stay on this one: hosts, variables, the key, exit statuses, ends. Then two nodes
# of four PEs in network namespaces.
# shellcheck disable=SC2016,SC2317  # what the PEs shall expand is in single quotes
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${srcdir:?}" "${xiorun=}" "${work=}"
# shellcheck source=tests/mpi/xiorun_rig.sh
. "$srcdir/tests/mpi/xiorun_rig.sh"

# prints NAME 'LINES': what the last command wrote, sorted
prints() {
  if [ "$(sort "$work/out")" = "$2" ]; then return; fi
  fail "$1: it wrote" "$work/out"
}

# An agent is called as ssh is. This one keeps what it was called with, and starts with an environment of its own.
cat >"$work/agent" <<AGENT
#!/bin/sh
echo "\$@" >>"$work/calls"
host=\$1
shift
case \$host in
  refuses) echo 'Permission denied (publickey).' >&2; exit 255 ;;
  asks) sleep 60.5151 ;;
  nothing) exit 0 ;;
  keeps) env -i PATH="\$PATH" HOST=\$host "\$@"; exit 0 ;;
  leaves) exec 3<&0; env -i PATH="\$PATH" HOST=\$host "\$@" <&3 & sleep 1; kill -9 \$!; exit 0 ;;
  greets) printf 'welcome to this host\nno end of line' ;;
esac
exec env -i PATH="\$PATH" HOST=\$host "\$@"
AGENT
chmod 755 "$work/agent"
hosts=("$xiorun" --agent "$work/agent" --address 127.0.0.1 --grace 2)

# --- PEs and their numbers
expect 'two hosts' 0 '' "${hosts[@]}" -H a:2,b:3 --tag-output sh -c 'echo "$HOST $XIO_TCP_RANK of $XIO_TCP_SIZE"'
prints 'two hosts' "$(for i in 0 1; do echo "[$i] a $i of 5"; done; for i in 2 3 4; do echo "[$i] b $i of 5"; done)"
expect 'fewer than places' 0 '' "${hosts[@]}" -n 3 -H a:2,user@b:3,c sh -c 'echo "$HOST $XIO_TCP_RANK"'
prints 'fewer than places' 'a 0
a 1
user@b 2'
printf '# two\na slots=1\n\n b:2 # more\nc\n' >"$work/hostfile"
expect 'a hostfile' 0 '' "${hosts[@]}" --hostfile "$work/hostfile" sh -c 'echo "$HOST $XIO_TCP_RANK"'
prints 'a hostfile' 'a 0
b 1
b 2
c 3'
expect 'a host that greets' 0 '' "${hosts[@]}" -H greets:1 echo here
if ! grep -q '^welcome to this host$' "$work/out" || ! grep -q '^here$' "$work/out"; then
  fail 'a greeting, or the words after it, are lost'
fi
expect 'words stay whole, in the same folder' 0 '' "${hosts[@]}" -H a sh -c 'printf "%s|" "$@"; pwd' - 'a b' '' "it's" '$x' $'two\nlines'
[ "$(cat "$work/out")" = "$(printf '%s|' 'a b' '' "it's" '$x' $'two\nlines'; pwd)" ] || fail 'words' "$work/out"
expect 'many bytes' 0 '' "${hosts[@]}" -H a,b sh -c 'yes 0123456789 | head -n 100000'
[ "$(grep -c '^0123456789$' "$work/out")" = 200000 ] || fail 'lines were torn or lost'
expect 'no standard input' 0 '' sh -c 'echo lost | "$@"' - "${hosts[@]}" -H a,b sh -c 'cat'
prints 'no standard input' ''

# --- What travels: variables that are named, XIO's own, and the key by no way but standard input.
: >"$work/calls"
export XIO_HEAP_SIZE=3M OTHER=other GIVEN=given XIO_TCP_KEY=0123456789abcdef-mine
expect 'variables' 0 '' "${hosts[@]}" -x GIVEN -x SET='a b' -H a:1,b:1 \
  sh -c 'echo "$XIO_HEAP_SIZE,${OTHER-no},$GIVEN,$SET"; echo "$XIO_TCP_KEY" >>"$0"' "$work/keys"
prints 'variables' '3M,no,given,a b
3M,no,given,a b'
unset XIO_HEAP_SIZE OTHER GIVEN XIO_TCP_KEY
key=$(sort -u "$work/keys")
if ! [[ $key =~ ^[0-9a-f]{64}$ ]] || grep -q -e "$key" -e 0123456789abcdef "$work/calls"; then
  fail "the key is '$key', or stands on a command line"
fi
expect 'the key is in no environment of the agents' 0 '' "${hosts[@]}" -H a,b sh -c 'sleep 1.7171' &
pid=$!
sleep 0.7
for one in $(pgrep -f "$work/agent|xiorun --node|pe-run"); do
  if tr '\0' '\n' <"/proc/$one/environ" 2>/dev/null | grep -q '^XIO_TCP_KEY='; then
    fail "process $one on the way has the key in its environment: $(tr '\0' ' ' <"/proc/$one/cmdline")"
  fi
done
wait $pid

# --- Ends
expect 'the first failure' 7 'PE 2 ended with status 7' "${hosts[@]}" -H a:2,b:2 sh -c '[ "$XIO_TCP_RANK" != 2 ] || exit 7'
SECONDS=0
expect 'one death ends all' 7 'PE 0 ended with status 7' "${hosts[@]}" -H a:1,b:2 sh -c '[ "$XIO_TCP_RANK" != 0 ] || exit 7; sleep 60.6161'
expect_none_left 'sleep 60.6161' 'one death'
expect 'a signal' 137 'PE 1 was killed by signal 9' "${hosts[@]}" -H a:1,b:2 sh -c '[ "$XIO_TCP_RANK" != 1 ] || kill -9 $$; sleep 60.6262'
expect_none_left 'sleep 60.6262' 'a signal'
expect 'a time-out' 124 '2 of 2 hosts still run after 1 s' "${hosts[@]}" --timeout 1 -H a,b sleep 60.6363
expect_none_left 'sleep 60.6363' 'a time-out'
[ $SECONDS -lt 40 ] || fail "the ends took $SECONDS s"
for signal in TERM KILL; do
  "${hosts[@]}" -H a,b sh -c 'echo ready; sleep 60.6464' >"$work/out" 2>"$work/err" &
  pid=$!
  for _ in $(seq 100); do [ "$(grep -c ready "$work/out")" = 2 ] && break; sleep 0.1; done
  kill -$signal $pid
  wait $pid 2>/dev/null
  sleep 1
  expect_none_left 'sleep 60.6464' "SIG$signal to the head"
done
# What a node does when its input ends, as when a connection breaks: orders by hand, as src/tools/xiorun/node.hpp has them.
order() { for part in "$@"; do printf '%d:%s,' ${#part} "$part"; done; }
node() { timeout -k 5 20 "$xiorun" --node >"$work/out" 2>"$work/err"; }
SECONDS=0
{ order 127.0.0.1:7 "$key" 2 0 2 0 0.5 0 0 / 2 sleep 60.6868 0; sleep 1; } | node
got=$?
if [ $got != 143 ] || [ $SECONDS -gt 8 ]; then
  fail "a node whose input ends: status $got after $SECONDS s"
fi
expect_none_left 'sleep 60.6868' 'a node whose input ends'
# bad_order STATUS 'SENTENCE': the order on standard input
bad_order() {
  node
  got=$?
  if [ $got = "$1" ] && grep -qE "$2" "$work/err"; then return; fi
  fail "an order: status $got, expected $1; /$2/:" "$work/err"
}
bad_order 1 'the xiorun that started this one has ended' </dev/null
bad_order 1 'standard input holds no order' <<<'hello: no order'
bad_order 1 'standard input holds no order' <<<'99999999999:x'
{ order 127.0.0.1:7 "$key" x; } >"$work/bad"
bad_order 1 'standard input holds no order' <"$work/bad"
{ order 127.0.0.1:7 "$key" 2 0 2 0 0.5 0 0 /no/folder 1 true 0; } >"$work/bad"
bad_order 1 "the folder '/no/folder' of this run cannot be entered here: No such file" <"$work/bad"

# An agent that keeps the status for itself, behind output without an end of line or more than a pipe holds.
expect 'a status that the agent keeps' 7 'PE 2 ended with status 7' "${hosts[@]}" -H a:2,keeps:2 sh -c 'printf "no end"; [ "$XIO_TCP_RANK" != 2 ] || exit 7'
[ "$(grep -o 'no end' "$work/out" | wc -l)" = 4 ] || fail 'what has no end of line is lost' "$work/out"
expect 'a death that the agent keeps' 137 'PE 0 was killed by signal 9' "${hosts[@]}" -H keeps:1,a:1 sh -c '[ "$XIO_TCP_RANK" != 0 ] || { head -c 200000 /dev/zero; kill -9 $$; }; sleep 60.6969'
expect_none_left 'sleep 60.6969' 'a death that the agent keeps'
expect 'an agent that keeps a good status' 0 '' "${hosts[@]}" -H keeps:2,a true
expect 'an agent that leaves' 1 "host leaves: the agent '.*' ended with status 0 before its PEs did" "${hosts[@]}" -H leaves:1,a:1 sleep 60.7171
expect_none_left 'sleep 60.7171' 'an agent that leaves'

# --- Worlds that outlive their PEs and hosts: those that are left go on, and the status is theirs.
dies() { printf '[ "$XIO_SURVIVE" = 1 ] || exit 9; case $XIO_TCP_RANK in %s) kill -KILL $$ ;; esac; sleep 0.5; %s' "$1" "$2"; }
lives=("${hosts[@]}" --survive)
expect 'PEs of hosts go on' 0 'PE 1 was killed by signal 9' "${lives[@]}" -H a:1,b:2 sh -c "$(dies 1 'echo "$XIO_TCP_RANK"')"
prints 'PEs of hosts go on' '0
2'
expect 'one of them fails' 3 'PE 1 was killed by signal 9' "${lives[@]}" -H a:1,b:2 sh -c "$(dies 1 '[ "$XIO_TCP_RANK" != 2 ] || exit 3')"
expect 'a host without PEs' 0 'PE 2 was killed by signal 9' "${lives[@]}" -H a:1,b:2 sh -c "$(dies '1|2' true)"
if grep -q 'no PE is left' "$work/err"; then fail 'a host speaks for all' "$work/err"; fi
expect 'no PE of any host' 1 'no PE is left' "${lives[@]}" -H a:1,keeps:2 sh -c "$(dies '*' true)"
expect 'too few PEs of hosts' 1 '2 of 3 PEs are left, fewer than --min-alive 3' "${lives[@]}" --min-alive 3 -H a:1,b:2 sh -c "$(dies 1 'sleep 60.7272')"
expect_none_left 'sleep 60.7272' 'too few PEs of hosts'
expect 'a host that is lost' 0 "host leaves is lost: the agent '.*' ended with status 0 before its PEs did" "${lives[@]}" -H leaves:2,a:1 \
  sh -c '[ "$XIO_TCP_RANK" != 2 ] || { sleep 2; exit 0; }; sleep 60.7373'
expect_none_left 'sleep 60.7373' 'a host that is lost'
expect 'too few hosts' 1 '1 of 3 PEs are left, fewer than --min-alive 2' "${lives[@]}" --min-alive 2 -H leaves:2,a:1 sleep 60.7474
expect_none_left 'sleep 60.7474' 'too few hosts'
# A host dies while all PEs compute: those of the other one have the results of all steps.
if has XIO_ENABLE_MODEL && [ -x "$builddir/examples/moe_survivors" ]; then
  expect 'a host that dies while PEs compute' 0 'host b is lost' "${lives[@]}" -x XIO_TIMEOUT_MS=20000 -H a:2,b:1 \
    sh -c 'XIO_MACHINE=$HOST "$@" && exit; kill -KILL $(ps -o ppid= -p $PPID) $PPID' sh "$builddir/examples/moe_survivors" "$work/weights" 3 2 2
  [ "$(grep -c '^PE [01]: 2 of 3 PEs go on, from step 2' "$work/out")$(grep -c ': 192 of 192 tokens right$' "$work/out")" = 22 ] ||
    fail 'the tokens of the living are not right' "$work/out" "$work/err"
fi
# leased NAME LEASE SLEEP: all of xiorun but the nodes is killed while PEs sleep, which write to nobody then; each tells a file.
leased() {
  local pid
  "${lives[@]}" --lease "$2" -H a:1,b:1 sh -c "echo ready; sleep $3; yes | head -n 100000; echo \$XIO_TCP_RANK >>$work/ended" >"$work/out" 2>"$work/err" &
  pid=$!
  for _ in $(seq 100); do [ "$(grep -c ready "$work/out")" = 2 ] && break; sleep 0.1; done
  # The front first: it ends what the other one leaves.
  # shellcheck disable=SC2046  # numbers
  kill -KILL "$pid" $(pgrep -P "$pid")
  wait "$pid" 2>/dev/null
  : >"$work/ended"
  for _ in $(seq 80); do pgrep -f "sleep $3" >/dev/null || break; sleep 0.1; done
  sleep 0.5
  expect_none_left "sleep $3" "$1"
}
leased 'a lease that is long enough' 60 1.7575
[ "$(sort "$work/ended" | tr '\n' ' ')" = '0 1 ' ] || fail 'PEs did not go on for their lease' "$work/ended"
leased 'a lease that ends' 1 60.7676
[ ! -s "$work/ended" ] || fail 'PEs outlived their lease' "$work/ended"
expect 'a lease without survivors' 2 '--lease is for --survive' "${hosts[@]}" --lease 3 -H a true

# --- Hosts that are not there
expect 'an agent that is refused' 255 "host refuses: the agent '.*' ended with status 255 before xiorun ran there" "${hosts[@]}" -H a:1,refuses:1 sleep 60.6565
grep -q 'Permission denied' "$work/err" || fail 'what the agent said is lost'
[ "$(grep -c 'xiorun: host' "$work/err")" = 1 ] || fail 'more than one sentence' "$work/err"
SECONDS=0
expect 'an agent that asks' 1 'host asks has not started xiorun within 1 s' "${hosts[@]}" --connect-timeout 1 -H a:1,asks:1 true
[ $SECONDS -lt 15 ] || fail "it waited $SECONDS s for one that asks"
expect_none_left 'sleep 60.5151' 'an agent that asks'
expect 'an agent that does nothing' 1 'ended with status 0 before xiorun ran there' "${hosts[@]}" -H nothing:1,a:1 true
expect 'no such agent' 126 "the agent '/no/agent' cannot be executed" "$xiorun" --agent /no/agent -H a true
expect 'no xiorun there' 127 'before xiorun ran there; .*/no/xiorun' "${hosts[@]}" --remote-xiorun /no/xiorun -H a true
expect 'no program there' 1 "xiorun: host .*: the program '/no/such' was not found" "${hosts[@]}" -H a /no/such
if command -v ssh >/dev/null; then
  expect 'ssh asks nothing' 255 'host nobody@127.0.0.1: the agent .ssh. ended with status 255' "$xiorun" -H nobody@127.0.0.1 true
fi

# --- Lists that are wrong
expect 'twice' 2 'the host a is in the list twice; .*a:4' "${hosts[@]}" -H a:1,b:1,a:1 true
expect 'twice by another user' 2 'the host a is in the list twice' "${hosts[@]}" -H a,me@a true
for bad in a:0 a:x a: a:2000 a:-1 a:1:2; do expect "'$bad'" 2 "the host '$bad' has no number of PEs" "${hosts[@]}" -H "$bad" true; done
for bad in '' ',' 'a,,b' ':3'; do expect "'$bad'" 2 'an entry without a name|--np is required' "${hosts[@]}" -H "$bad" true; done
expect 'a dash' 2 'begins with a dash' "${hosts[@]}" -H a,-oProxyCommand=x true
expect 'too many' 2 'is more than the hosts. 3 places' "${hosts[@]}" -n 4 -H a:2,b true
expect 'both lists' 2 'both given' "${hosts[@]}" -H a --hostfile "$work/hostfile" true
expect 'no file' 2 "hostfile '/no/file' cannot be read: No such file" "${hosts[@]}" --hostfile /no/file true
echo 'a max=3' >"$work/bad"
expect 'a wrong line' 2 "has the line 'a max=3'" "${hosts[@]}" --hostfile "$work/bad" true
echo '# none' >"$work/bad"
expect 'no line' 2 'names no host' "${hosts[@]}" --hostfile "$work/bad" true
expect 'no variable' 2 '-x NOT_THERE: the variable is not set' "${hosts[@]}" -x NOT_THERE -H a true
expect 'an agent of blanks' 2 '--agent is empty' "$xiorun" --agent ' ' -H a true

# --- Worlds
expect 'a world of two hosts' 0 '' "${hosts[@]}" -x XIO_TEST_SIZE=5 -H a:2,b:3 "$builddir/tests/mpi/bootstrap_probe" worlds tcp
# shellcheck source=tests/rdma/nodes.sh
. "$srcdir/tests/rdma/nodes.sh" || exit 1
trap 'nodes_down; rm -rf "$work"' EXIT
if ! why=$(nodes_up); then
  echo "not run: two nodes of four PEs; $why"
else
  cat >"$work/enter" <<ENTER
#!/bin/sh
case \$1 in "$address_a") at=a ;; *) at=b ;; esac
shift
export XIO_MACHINE=\$at
exec ip netns exec $node_prefix-\$at unshare --uts --pid --fork --kill-child --mount-proc sh -c "hostname node-\$at && exec \"\\\$@\"" sh "\$@"
ENTER
  chmod 755 "$work/enter"
  nodes=("$xiorun" --agent "$work/enter" -H "$address_a:4,$address_b:4" --grace 2)
  expect 'two nodes of four PEs' 0 '' "${nodes[@]}" -x XIO_TEST_SIZE=8 "$builddir/tests/mpi/bootstrap_probe" worlds tcp
  expect 'their names' 0 '' "${nodes[@]}" --tag-output sh -c 'hostname'
  prints 'their names' "$(for i in 0 1 2 3; do echo "[$i] node-a"; done; for i in 4 5 6 7; do echo "[$i] node-b"; done)"
  if has XIO_ENABLE_MODEL; then
    expect 'ops between two nodes of four PEs' 0 '' env XIO_TIMEOUT_MS=60000 "${nodes[@]}" --timeout 120 "$builddir/tests/mpi/rma"
  fi
  expect 'a death on the other node' 5 'PE 6 ended with status 5' "${nodes[@]}" sh -c '[ "$XIO_TCP_RANK" != 6 ] || exit 5; sleep 60.6767'
  expect_none_left 'sleep 60.6767' 'a death on the other node'
fi

finish xiorun_hosts
