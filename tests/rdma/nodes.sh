# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Two nodes on one machine: network, PID and host name of their own, joined by a veth pair. Source it after tests/env.sh.
#
#   nodes_up                       makes them, or says in one sentence why not and fails
#   node a|b COMMAND...            runs COMMAND there, as process $! when started with &
#   pair LOG COMMAND...            one PE on each node, found by TCP; output in LOG.a and LOG.b
#   mpi_pair COMMAND...            the same by mpirun, which reaches node b through an agent in ssh's stead
#   cut_link, mend_link
: "${MPIRUN=}"
node_prefix=xio-$$
address_a=10.99.0.1
address_b=10.99.0.2
node_port=20000
export XIO_TCP_TRUST_NETWORK=1 # for a build that can prove nothing
nodes_work=$(mktemp -d /tmp/xio-nodes.XXXXXX) || exit 1

# Runs as the trap of the script that sources this.
nodes_down() {
  local name pids
  for name in a b; do
    # By PID, and only those in our own namespaces.
    mapfile -t pids < <(ip netns pids "$node_prefix-$name" 2>/dev/null)
    if [ ${#pids[@]} -gt 0 ]; then kill -9 "${pids[@]}" 2>/dev/null; fi
    ip netns del "$node_prefix-$name" 2>/dev/null
  done
  rm -rf "$nodes_work"
}
trap nodes_down EXIT
trap 'exit 130' INT TERM

nodes_up() {
  local why
  if ! command -v ip >/dev/null; then
    echo 'two network namespaces want iproute2'
    return 1
  fi
  if ! why=$({ make_nodes; } 2>&1); then
    echo "this user may not make two network namespaces here: ${why//$'\n'/, }"
    return 1
  fi
}

# A cut link stays cut for both: carrier goes with either end.
make_nodes() {
  local name
  ip netns add "$node_prefix-a" && ip netns add "$node_prefix-b" || return 1
  ip link add xio0 netns "$node_prefix-a" type veth peer name xio0 netns "$node_prefix-b" || return 1
  ip -n "$node_prefix-a" address add "$address_a/24" dev xio0 && ip -n "$node_prefix-b" address add "$address_b/24" dev xio0 || return 1
  for name in a b; do
    ip -n "$node_prefix-$name" link set lo up && ip -n "$node_prefix-$name" link set xio0 up || return 1
  done
  node a true
}

cut_link() { ip -n "$node_prefix-a" link set xio0 down; }
mend_link() { ip -n "$node_prefix-a" link set xio0 up; }

# The PIDs differ too, so that nobody maps a neighbour's memory through /proc.
node() {
  local name=$1
  shift
  # shellcheck disable=SC2016  # for the inner shell
  exec ip netns exec "$node_prefix-$name" unshare --uts --pid --fork --kill-child --mount-proc \
    sh -c 'hostname "$0" && exec "$@"' "node-$name" "$@"
}

# in_node NAME COMMAND...: as `node`, and comes back.
in_node() { (node "$@"); }

# start_pe NAME RANK LOG COMMAND...
start_pe() {
  local name=$1 rank=$2 log=$3
  shift 3
  (
    export XIO_BOOTSTRAP=tcp XIO_TCP_ROOT=$address_a:$node_port XIO_TCP_RANK=$rank XIO_TCP_SIZE=2
    export XIO_TCP_KEY='a key for one test run' XIO_MACHINE=$name
    node "$name" "$@"
  ) >"$log.$name" 2>&1 &
}

# Leaves the statuses in status_a and status_b.
pair() {
  local pid_a pid_b
  node_port=$((node_port + 1))
  start_pe a 0 "$@"
  pid_a=$!
  start_pe b 1 "$@"
  pid_b=$!
  status_a=0 status_b=0
  wait "$pid_a" || status_a=$?
  wait "$pid_b" || status_b=$?
  [ $status_a = 0 ] && [ $status_b = 0 ]
}

# mpirun calls its agent as it would ssh: AGENT HOST COMMAND, with the command in one or more words for a shell.
mpi_pair() {
  cat >"$nodes_work/agent" <<AGENT
#!/bin/sh
shift
exec ip netns exec $node_prefix-b unshare --uts --pid --fork --kill-child --mount-proc sh -c 'hostname node-b && exec sh -c "\$*"' sh "\$@"
AGENT
  chmod 755 "$nodes_work/agent"
  local variable flags=(--bind-to none)
  if [ "$(id -u)" = 0 ]; then flags+=(--allow-run-as-root); fi
  # To the other node go only the variables that are named.
  while read -r variable; do flags+=(-x "$variable"); done < <(env | grep -o '^XIO_[A-Z_]*')
  in_node a "$MPIRUN" "${flags[@]}" --mca plm_rsh_agent "$nodes_work/agent" --host "$address_a,$address_b" -np 2 "$@"
}

mpi_can_pair() { [ -n "$MPIRUN" ] && "$MPIRUN" --version 2>/dev/null | grep -q 'Open MPI) 4\.'; }
