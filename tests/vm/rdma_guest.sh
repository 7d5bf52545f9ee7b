# shellcheck shell=dash
# SPDX-License-Identifier: MIT
# What tests/vm/rdma.sh runs in a guest. role (a word of the kernel's command line) is loop: both PEs here, over rxe on a
# dummy device; or a, b: one PE here, over rxe on the virtio network between two guests. Both guests go through the same
# list in step: every part has a port of its own, the guest that comes first waits.
# /share/plan sets builddir, cases (FAMILY:PROGRAM ...), measured (families), rounds, key.
# shellcheck source=/dev/null
. /share/plan
: "${role:?}" "${builddir:?}" "${cases?}" "${measured?}" "${rounds:?}" "${key:?}"
failures=0
port=20000
device=rxe0
state=/sys/class/infiniband/$device/ports/1

fail() {
  echo "FAIL $*"
  failures=$((failures + 1))
}

clock() { awk '{print $1}' /proc/uptime; }
since() { awk -v from="$1" '{printf "%.1f s", $1 - from}' /proc/uptime; }

# ---- the link -----------------------------------------------------------------------------------------------------
# Sets netdev, root (address of PE 0) and ranks (those in this guest).
address() {
  case $role in
    loop) netdev=dummy0 mine=10.77.0.1 ranks='0 1' ;;
    a) netdev=eth0 mine=10.77.0.1 ranks=0 ;;
    b) netdev=eth0 mine=10.77.0.2 ranks=1 ;;
  esac
  root=10.77.0.1
  if [ "$netdev" = dummy0 ]; then
    modprobe dummy
    # 4096 octets of payload and RoCE's headers.
    /usr/sbin/ip link set dummy0 mtu 4200 || return 1
  else
    modprobe virtio_net
    /usr/sbin/ip link set eth0 mtu 9000 || return 1
  fi
  /usr/sbin/ip link set "$netdev" up && /usr/sbin/ip addr add "$mine/24" dev "$netdev"
}

# Sets gid, the index of the RoCE v2 entry made of the IPv4 address.
find_gid() {
  local entry tries=0
  while [ $tries -lt 50 ]; do
    for entry in "$state"/gids/*; do
      gid=${entry##*/}
      case $(cat "$entry" 2>/dev/null) in
        *:0000:ffff:0a4d:*) if grep -q 'RoCE v2' "$state/gid_attrs/types/$gid"; then return 0; fi ;;
      esac
    done
    sleep 0.1
    tries=$((tries + 1))
  done
  return 1
}

link() {
  # rdma_rxe computes its checksums by the crypto API's crc32.
  address && modprobe crc32_generic && modprobe ib_uverbs && modprobe rdma_rxe &&
    /usr/sbin/rdma link add $device type rxe netdev "$netdev" && find_gid && ibv_devinfo -d $device &&
    grep -q ACTIVE "$state/state"
}

# Packets that the device has sent, and those it gave up on.
sent() { cat "$state/hw_counters/sent_pkts"; }

# ---- others' programs on it ---------------------------------------------------------------------------------------
# both NAME SECONDS PROGRAM ARGUMENT...: server here or there, client here or there; said: what the client said.
both() {
  local name=$1 limit=$2 status=0 server='' tries=0 begin
  shift 2
  begin=$(clock)
  port=$((port + 1))
  said=
  if [ "$role" != b ]; then
    timeout "$limit" "$@" -p $port >/tmp/server 2>&1 &
    server=$!
  fi
  if [ "$role" != a ]; then
    while [ $tries -lt 900 ]; do
      status=0
      timeout "$limit" "$@" -p $port $root >/tmp/client 2>&1 || status=$?
      # Until the server listens, clients end at once.
      if ! grep -qi "connect to" /tmp/client; then break; fi
      sleep 0.1
      tries=$((tries + 1))
    done
    said=$(cat /tmp/client)
    if [ $status != 0 ]; then fail "$name, client: status $status" && cat /tmp/client; fi
  fi
  if [ -n "$server" ]; then
    wait $server || { fail "$name, server: status $?" && cat /tmp/server; }
  fi
  if [ "$name" != - ]; then echo "ran  $name ($(since "$begin"))"; fi
}

others() {
  both 'ibv_rc_pingpong, 4 KiB' 20 ibv_rc_pingpong -d $device -g "$gid" -s 4096 -n 100 -c
  both 'ib_atomic_lat, fetch-add' 20 ib_atomic_lat -d $device -x "$gid" -F -A FETCH_AND_ADD -n 200
  echo "$said" | awk '$1 == 8 && NF >= 5 {print "perftest ib_atomic_lat " $5 " us"}'
}

# ---- ours ---------------------------------------------------------------------------------------------------------
# pes SECONDS LOG PROGRAM ARGUMENT...: one PE for each rank of this guest; what they say lies in LOG.RANK.
pes() {
  local limit=$1 log=$2 rank pids='' pid status=0
  shift 2
  port=$((port + 1))
  for rank in $ranks; do
    XIO_BOOTSTRAP=tcp XIO_TCP_ROOT=$root:$port XIO_TCP_RANK=$rank XIO_TCP_SIZE=2 XIO_TCP_KEY=$key XIO_MACHINE=pe$rank \
      timeout "$limit" "$@" >"$log.$rank" 2>&1 &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || status=$?; done
  return $status
}

# The verbs fabric by itself, between two queue pairs of this guest.
probe() {
  local begin
  begin=$(clock)
  if timeout 60 "$builddir/tests/rdma/verbs_probe" >/tmp/probe 2>&1; then
    echo "ok   verbs_probe ($(since "$begin"), $(grep -c '^ok' /tmp/probe) checks)"
  else
    fail "verbs_probe: status $?"
    tail -n 30 /tmp/probe | sed 's/^/  /'
  fi
}

# A verbs device has 8-byte atomics; those of 4 bytes have to be allowed to be made of them.
export XIO_RDMA_ATOMIC32=emulate
# One PE may be done long before the other, on processors like these.
export XIO_TIMEOUT_MS=90000

# suite FAMILY PROGRAM: FAMILY may be libfabric, by its provider verbs, for the proxy's entries. Data and completions are judged by the program; that they went by the device, by its counter.
suite() {
  local begin before packets status=0 executor=verbs family=$1
  # rxe's completion queues are too small for the 256 peers that libfabric expects.
  if [ "$1" = libfabric ]; then executor=libfabric family=proxy; export FI_UNIVERSE_SIZE=16; fi
  begin=$(clock)
  before=$(sent)
  XIO_ROUTE=rdma XIO_NIC_EXECUTOR=$executor XIO_FABRIC_PROVIDER=verbs XIO_NIC_FAMILY=$family pes 100 /tmp/suite "$builddir/tests/mpi/$2" || status=$?
  packets=$(($(sent) - before))
  if [ $status != 0 ]; then
    fail "$1 $2: status $status"
    tail -n 20 /tmp/suite.* | sed 's/^/  /'
  elif [ $packets -lt 10 ]; then
    fail "$1 $2: $device sent $packets packets, so the ops went some other way"
  else
    echo "ok   $1 $2 ($(since "$begin"), $packets packets)"
  fi
}

# lost FAMILY: guest b goes away in mid-transfer, without a word, and guest a judges the error that it gets: retries run out. The last
# that they do. (A link that is set down keeps rxe from ending its queue pairs for 50 s, rxe_pool.c.)
lost() {
  local status=0 begin waited=0
  begin=$(clock)
  export XIO_TIMEOUT_MS=5000 XIO_ROUTE=rdma XIO_NIC_EXECUTOR=verbs XIO_NIC_FAMILY=$1 XIO_RDMA_TIMEOUT=14
  if [ "$role" = b ]; then
    pes 100 /tmp/lost "$builddir/tests/rdma/lost_peer" &
    while ! grep -q '^moving' /tmp/lost.1 && [ $waited -lt 400 ]; do
      sleep 0.1
      waited=$((waited + 1))
    done 2>/dev/null
    sleep 1
    return
  fi
  pes 100 /tmp/lost "$builddir/tests/rdma/lost_peer" || status=$?
  if [ $status != 0 ]; then fail "$1, the peer gone: status $status"; else echo "ok   $1, the peer gone ($(since "$begin"))"; fi
  tail -n 20 /tmp/lost.0 | sed 's/^/  /'
}

# ---- side by side -------------------------------------------------------------------------------------------------
# `rounds` alternations of perftest and of xio-perf: half of a signal's round trip, and puts of one thread (MB of 10^6 octets;
# perftest's are 2^20). Emulated, hence printed and not judged.
measure() {
  local round=0 family
  while [ $round -lt "$rounds" ]; do
    round=$((round + 1))
    both - 20 ib_write_lat -d $device -x "$gid" -F -s 8 -n 500
    echo "$said" | awk '$1 == 8 && NF >= 5 {print "measured perftest lat_us 8 " $5}'
    both - 20 ib_write_bw -d $device -x "$gid" -F -s 65536 -n 100
    echo "$said" | awk '$1 == 65536 && NF >= 4 {print "measured perftest bw_mbs 65536 " $4 * 1.048576}'
    for family in $measured; do ours "$family"; done
  done
}

ours() {
  local status=0
  XIO_ROUTE=rdma XIO_NIC_EXECUTOR=verbs XIO_NIC_FAMILY=$1 pes 60 /tmp/link "$builddir/xio-perf" signal_pingpong put_bw \
    -s thread -c 1 -t 1 --sizes 65536 -n 500 -r 3 --format csv || status=$?
  if [ $status != 0 ]; then
    fail "$1 xio-perf: status $status"
    tail -n 20 /tmp/link.*
  elif [ -e /tmp/link.0 ]; then
    awk -F, -v family="$1" '$1 == "signal_pingpong" {print "measured", family, "lat_us", $4, $10 / 2}
      $1 == "put_bw" {print "measured", family, "bw_mbs", $4, $4 / $10}' /tmp/link.0
  fi
}

# ---- go -----------------------------------------------------------------------------------------------------------
if ! link; then
  dmesg | tail -n 20
  echo "FAIL no rxe device in this guest"
  exit 1
fi
others
if [ "$role" = loop ]; then probe; fi
for case in $cases; do suite "${case%:*}" "${case#*:}"; done
measure
if [ "$role" != loop ]; then lost "${cases%%:*}"; fi
for counter in "$state"/hw_counters/*_err; do
  if [ "$(cat "$counter" 2>/dev/null || echo 0)" != 0 ]; then echo "counter ${counter##*/} $(cat "$counter")"; fi
done
echo "$failures failures"
[ $failures = 0 ]
