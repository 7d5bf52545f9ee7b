#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
#   tests/vm/nvme_bench.sh
#
# xio-perf by vfio and by the kernel module beside fio over the kernel's driver, on two like drives of one guest, in turn: a
# file in memory and no medium at all (null-co). Everything is emulated, the processor first of all, so rates and their ratios
# are printed as such and say nothing of hardware; the test judges how many doorbells a command takes, and the kernel module beside
# vfio, both in one guest. `make bench-vm-nvme`.
#   ROUNDS=5 SECONDS_EACH=1
set -uo pipefail
# shellcheck source=/dev/null
. "${XIO_TEST_BUILDDIR:?}/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${gpu:?}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/vm/packages.sh
. "$here/packages.sh"
if [ "$gpu" != host ]; then
  echo "tests/vm/nvme_bench.sh wants a build --with-gpu=host: the guest has no GPU" >&2
  exit 125
fi
need fio=fio
work=$(mktemp -d /tmp/xio-vm.XXXXXX) || exit 125
images=$(mktemp -d /dev/shm/xio-vm.XXXXXX) || exit 125
trap 'rm -rf "$work" "$images"' EXIT
mkdir "$work/share"
cp "$here/nvme_bench_guest.sh" "$work/share/"
unset MAKEFLAGS MAKELEVEL MFLAGS
headers=$("$here/headers" 6.12) || exit 125
mkdir "$work/xio"
cp "$srcdir"/kernel/xio/{*.c,*.h,Kbuild,Makefile} "$work/xio/"
if ! make -s -C "$work/xio" KDIR="$headers" >"$work/make.log" 2>&1; then
  cat "$work/make.log"
  exit 125
fi
strip --strip-debug -o "$work/share/xio.ko" "$work/xio/xio.ko"
cat >"$work/share/plan" <<PLAN
builddir='$builddir'
rounds='${ROUNDS:-5}'
seconds='${SECONDS_EACH:-1}'
PLAN
"$here/carry" "$work/share/root" "$builddir/xio-perf" "$(command -v fio)" || exit 125
# Blocks are allocated first: in a file with holes the first program would pay for all allocations.
for image in ours theirs; do dd if=/dev/zero of="$images/$image" bs=1M count=64 status=none || exit 125; done
begin=$SECONDS
VM_IOMMU=1 VM_MEM=1536 VM_TIMEOUT=${VM_TIMEOUT:-900} "$here/run" "$work/share" nvme_bench_guest.sh \
  -drive "file=$images/ours,if=none,id=d0,format=raw" -device "nvme,serial=d0,addr=10.0,drive=d0" \
  -drive "file=$images/theirs,if=none,id=d1,format=raw" -device "nvme,serial=d1,addr=11.0,drive=d1" \
  -blockdev "driver=null-co,node-name=d2,size=67108864,read-zeroes=on" -device "nvme,serial=d2,addr=12.0,drive=d2" \
  -blockdev "driver=null-co,node-name=d3,size=67108864,read-zeroes=on" -device "nvme,serial=d3,addr=13.0,drive=d3" \
  >"$work/log" 2>&1
status=$?
if [ $status != 0 ]; then
  tr -d '\r' <"$work/log" | sed 's/^/  | /'
  echo "FAIL the guest ended with status $status (124: hung, 125: not set up, 126: died)"
  exit $status
fi
# rate WHAT WHO IOPS, and doorbells WHAT VALUE LIMIT
tr -d '\r' <"$work/log" | awk '
  function median(who, what,   a, n, i, j, t) {
    n = split(values[who, what], a, " ")
    for (i = 2; i <= n; ++i) for (j = i; j > 1 && a[j - 1] + 0 > a[j] + 0; --j) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
    return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
  }
  # Of the rounds, each of which has one after the other.
  function median_ratio(who, what,   a, b, n, i) {
    n = split(values[who, what], a, " ")
    split(values["xio", what], b, " ")
    values["ratio", what] = ""
    for (i = 1; i <= n; ++i) values["ratio", what] = values["ratio", what] " " a[i] / b[i]
    values["ratio", "all"] = values["ratio", "all"] values["ratio", what]
    pairs += n
    return median("ratio", what)
  }
  $1 == "rate" {
    if (!($2 in known)) { known[$2]; order[++count] = $2 }
    if ($3 != "xio" && !(($2, $3) in values)) whos[$2] = whos[$2] " " $3
    values[$3, $2] = values[$3, $2] " " $4
    if ($3 != "xio") seen[$2, $3]
  }
  $1 == "doorbells" {
    if ($3 > worst[$2] + 0) worst[$2] = $3
    limit[$2] = $4
  }
  END {
    print "emulated: rates say nothing of hardware"
    for (i = 1; i <= count; ++i) {
      what = order[i]
      own = median("xio", what)
      printf "  %-22s xio %9.0f", what, own
      for (pair in seen) {
        split(pair, part, SUBSEP)
        if (part[1] == what && part[2] == "kmod")
          printf "   kmod %9.0f (%.2f x of vfio, the median of rounds)", median("kmod", what), median_ratio("kmod", what)
        else if (part[1] == what) printf "   %s %9.0f (%.1f x)", part[2], median(part[2], what), own / median(part[2], what)
      }
      print ""
    }
    all = median("ratio", "all")
    printf "%s kmod %.3f x of vfio, the median of all %d pairs of runs, at least 0.95\n", all < 0.95 ? "FAIL" : "ok  ", all, pairs
    failed += all < 0.95
    for (what in worst) {
      bad = worst[what] > limit[what]
      printf "%s doorbells a command, %s: %.4f, at most %.4f\n", bad ? "FAIL" : "ok  ", what, worst[what], limit[what]
      failed += bad
    }
    exit failed != 0
  }'
status=$?
echo "nvme_bench: $((SECONDS - begin)) s"
exit $status
