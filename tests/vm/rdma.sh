#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   tests/vm/rdma.sh [loop] [pair]
#
# XIO on a real RDMA device, as far as one can be had without hardware: the Linux kernel's rxe, in one guest (loop) and
# between two guests on one network (pair). Others' programs use the same link in the same boot. A program that loses data
# or a completion, or that goes around the device, fails; times are emulated and only printed. `make check-vm-rdma`.
#   XIO_TEST_LEAVE_OUT=1  each family once, and two of them between guests, as .ci/run has it (tests/leave_out)
#   CASES='mlx5:rma ...'  families of XIO_NIC_FAMILY and programs of tests/mpi
#   MEASURED='proxy ...'  families beside perftest, ROUNDS=5 times (1: that it can be measured)
set -uo pipefail
# shellcheck source=/dev/null
. "${XIO_TEST_BUILDDIR:?}/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${sanitizer=}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/packages.sh
. "$here/packages.sh"
for part in XIO_ENABLE_MODEL HAVE_VERBS; do
  if ! grep -q "^#define $part 1" "$builddir/config.h"; then
    echo "tests/vm/rdma.sh wants a build with $part (the software NIC, libibverbs)" >&2
    exit 125
  fi
done
key='a key for one test run'
provider=/etc/libibverbs.d/rxe.driver
need ibv_devinfo=ibverbs-utils ib_write_lat=perftest $provider=ibverbs-providers
# An unix socket's path is short.
work=$(mktemp -d /tmp/xio-vm.XXXXXX) || exit 125
guests=()
# shellcheck disable=SC2317  # called by the trap
finish() {
  if [ ${#guests[@]} -gt 0 ]; then kill "${guests[@]}" 2>/dev/null; fi
  wait
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# share NAME CASES: a folder for a guest's eyes.
share() {
  local program
  rm -rf "${work:?}/$1"
  mkdir -p "$work/$1"
  cp "$here/rdma_guest.sh" "$work/$1/"
  cat >"$work/$1/plan" <<PLAN
builddir='$builddir'
key='$key'
cases='$2'
measured='${MEASURED-proxy}'
rounds='${ROUNDS-1}'
PLAN
  for program in ibv_devinfo ibv_rc_pingpong ib_write_lat ib_write_bw ib_atomic_lat; do
    "$here/carry" "$work/$1/root" "$(command -v $program)" || exit 125
  done
  "$here/carry" "$work/$1/root" $provider /usr/lib/*/libibverbs/librxe-rdmav*.so || exit 125
  if [[ $2 == *libfabric:* ]]; then "$here/carry" "$work/$1/root" "$(ldconfig -p | sed -n 's/.*libfabric\.so\.1 .*=> //p')" || exit 125; fi
  for program in $(tr ' ' '\n' <<<"$2" | sed -n 's/.*://p' | sort -u); do
    "$here/carry" "$work/$1/root" "$builddir/tests/mpi/$program" || exit 125
  done
  "$here/carry" "$work/$1/root" "$builddir/tests/rdma/lost_peer" "$builddir/tests/rdma/verbs_probe" \
    "$builddir/xio-perf" || exit 125
}

# ratios LOG...: medians of what was measured, ours over perftest's.
ratios() {
  cat "$@" | tr -d '\r' | awk '
    function median(who, what,   a, n, i, j, t) {
      n = split(values[who, what], a, " ")
      for (i = 2; i <= n; ++i) for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; --j) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
      return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
    }
    $1 == "measured" { values[$2, $3 " " $4] = values[$2, $3 " " $4] " " $5; whos[$2]; whats[$3 " " $4] }
    END {
      for (what in whats) {
        if (!(("perftest", what) in values)) continue
        base = median("perftest", what)
        printf "  emulated %-16s perftest %.1f", what, base
        for (who in whos) if (who != "perftest" && (who, what) in values) {
          own = median(who, what)
          printf ", %s %.1f, ratio %.2f", who, own, base ? own / base : 0
        }
        print ""
      }
    }'
}

# told NAME STATUS LOG
told() {
  if [ "$2" = 0 ]; then
    grep -aE '^(ok|ran|perftest|counter|vm:)' "$3" | tr -d '\r' | sed "s/^/  $1: /"
    return 0
  fi
  tr -d '\r' <"$3" | sed "s/^/  $1: /"
  echo "FAIL $1: its guest ended with status $2 (124: hung, 125: not set up, 126: died)"
  return 1
}

loop() {
  local status=0
  share loop "${CASES-$loop_cases}"
  VM_TIMEOUT=700 VM_SMP=2 VM_APPEND='role=loop' "$here/run" "$work/loop" rdma_guest.sh >"$work/loop.log" 2>&1 || status=$?
  told loop $status "$work/loop.log" || return 1
  ratios "$work/loop.log"
}

# guest NAME OTHER MAC: one of two guests on a network that is a pair of unix sockets. Over a TCP socket it is 40 times slower.
guest() {
  VM_TIMEOUT=700 VM_SMP=1 VM_APPEND="role=$1" exec "$here/run" "$work/pair" rdma_guest.sh \
    -netdev "dgram,id=n0,local.type=unix,local.path=$work/$1.sock,remote.type=unix,remote.path=$work/$2.sock" \
    -device "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:$3,host_mtu=9000" >"$work/$1.log" 2>&1
}

pair() {
  local status_a=0 status_b=0 bad=0
  share pair "${CASES-$pair_cases}"
  "$here/image" >/dev/null || exit 125
  rm -f "$work/a.sock" "$work/b.sock"
  guest a b 01 &
  guests=($!)
  guest b a 02 &
  guests+=($!)
  local first='' second status=0
  wait -n -p first "${guests[@]}" || status=$?
  second=${guests[0]}
  if [ "$first" = "$second" ]; then second=${guests[1]}; fi
  # The other one would wait for a guest that died, in each of its parts.
  if [ $status = 126 ]; then kill "$second" 2>/dev/null; fi
  if [ "$first" = "${guests[0]}" ]; then
    status_a=$status
    wait "$second" || status_b=$?
  else
    status_b=$status
    wait "$second" || status_a=$?
  fi
  guests=()
  told a $status_a "$work/a.log" || bad=1
  told b $status_b "$work/b.log" || bad=1
  ratios "$work/a.log" "$work/b.log"
  return $bad
}

# died PART LOG...: whether a guest's kernel did; then the part is worth another try. Nothing of XIO's runs in these
# kernels, and rxe writes to memory of processes only: it is QEMU's translator (seen: a flags register with bits that no
# processor has). A kernel that XIO does kill dies again.
died() {
  grep -qa 'Kernel panic - not syncing' "${@:2}" || return 1
  echo "$1: a guest's kernel died, in which nothing of XIO's runs; all of it once more"
}

# Each family in loopback and between guests, where a round trip takes ten times as long; the slow cases there, in one family.
loop_cases='proxy:shapes proxy:sync'
pair_cases='proxy:atomics'
for family in proxy mlx5 bnxt ionic; do
  loop_cases+=" $family:rma $family:atomics $family:signals"
  pair_cases+=" $family:signals"
done
pair_cases+=' proxy:rma mlx5:rma'
if has HAVE_LIBFABRIC; then loop_cases+=' libfabric:rma libfabric:atomics libfabric:signals'; fi
# shellcheck disable=SC2086  # lists
{
  loop_cases=$("$srcdir/tests/leave_out" check-vm-rdma:loop $loop_cases)
  pair_cases=$("$srcdir/tests/leave_out" check-vm-rdma:pair $pair_cases)
}
if [ $# = 0 ]; then set -- loop pair; fi
bad=0
for part in "$@"; do
  begin=$SECONDS
  case $part in
    loop) loop || { died loop "$work/loop.log" && loop; } || bad=1 ;;
    pair) pair || { died pair "$work/a.log" "$work/b.log" && pair; } || bad=1 ;;
    *)
      echo "tests/vm/rdma.sh knows loop and pair, not $part" >&2
      exit 2
      ;;
  esac
  echo "$part: $((SECONDS - begin)) s"
done
exit $bad
