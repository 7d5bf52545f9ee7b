#!/bin/bash
# SPDX-License-Identifier: MIT
# Sourced by a script with the kind of simulated NIC: mlx5, bnxt or ionic.
# The script then runs in a session of its own, with the functions of tests/mpi/run.sh and those below.
export XIO_TEST_UVERBS_NIC=$1
if [ -z "${XIO_TEST_UVERBS_SESSION-}" ]; then exec "${0%/*}/run" "$0"; fi
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/../mpi/run.sh" || exit 1
: "${builddir:?}" "${failures:=0}"
on_host_platform || skip 'the simulated device reaches host memory alone'
if [ "$1" = mlx5 ]; then
  has HAVE_MLX5DV || skip 'this build is without libmlx5'
else
  has HAVE_VERBS || skip 'this build is without libibverbs'
fi
[ "$(uname -m)" = x86_64 ] || skip 'the simulated doorbell pages decode stores of x86-64'
export XIO_NIC_FAMILY=$1 XIO_BACKEND=hw XIO_RDMA_ATOMIC32=emulate
# Atomics are loops of compare-and-swap here, each turn a message to the other process and back: those of 4 bytes, and
# where the NIC has but two, nearly all.
# shellcheck disable=SC2034  # of run.sh
limit=250
export XIO_TIMEOUT_MS=${XIO_TIMEOUT_MS-200000}

# expect FAULTS TEXT: TEXT is an extended regular expression, found in the words of every PE, which come by a file for each:
# on one terminal they may cut each other in two.
expect() {
  local words status
  words=$(mktemp -d)
  # shellcheck disable=SC2016  # for the inner shell
  XIO_ROUTE=rdma XIO_LOG_LEVEL=error XIO_TEST_UVERBS_FAULTS=$1 launch any 2 timeout -k 5 60 \
    bash -c 'exec "$2" >"$1/$$" 2>&1' - "$words" "$builddir/tests/mpi/signals" >/dev/null 2>&1
  status=$?
  if [ $status != 0 ] && [ $status != 124 ] && [ "$(grep -lE "xio_ctx_create.*$2" "$words"/* | wc -l)" = 2 ]; then
    echo "ok   $1"
  else
    fail "$1: status $status, expected on every PE: $2" "$words"/*
  fi
  rm -rf "$words"
}

# posts TEXT: the administrator reads in xio-info how kernels will post, and why not.
posts() {
  if env -u XIO_NIC_FAMILY -u XIO_BACKEND "$builddir/xio-info" 2>&1 | grep -q "$1"; then return; fi
  fail "xio-info with faults '${XIO_TEST_UVERBS_FAULTS-}' does not say: $1"
}

# With XIO_TEST_UVERBS_VENDOR, a file that stands in for the vendor's library:
library=$builddir/.libs/libxio_vendor.so

# by_library FILE TEXT [NAME=VALUE ...]: what xio-info says of that library in a session of its own.
by_library() {
  local file=$1 text=$2 out
  shift 2
  out=$(env -u XIO_NIC_FAMILY -u XIO_BACKEND -u LD_PRELOAD -u SYSFS_PATH XIO_TEST_UVERBS_VENDOR="$file" "$@" \
    "${0%/*}/run" "$builddir/xio-info" 2>&1)
  if ! grep -Eq "$text" <<<"$out"; then fail "xio-info by ${file##*/} $* does not say: $text" <(grep -E 'kernels_post|queues_by' <<<"$out"); fi
}

# without NAME ...: makes a copy of the library that has none of these calls, and prints its path.
without() {
  local name script=
  for name in "$@"; do script+="s/$name\\x00/${name%?}_\\x00/g;"; done
  LC_ALL=C sed "$script" "$library" >"$XIO_TEST_UVERBS_SESSION/libwithout.so"
  echo "$XIO_TEST_UVERBS_SESSION/libwithout.so"
}

# rules PATTERN: XIO has broken no rule of the library so far. Then its own test, where each rule with such a name refuses.
rules() {
  local broken
  broken=$(awk '$2 != 0 { print $1 }' "$XIO_TEST_UVERBS_SESSION"/rules.* | sort -u)
  [ -z "$broken" ] || fail "XIO has broken these rules of the library:" <(cat <<<"$broken")
  "$builddir/tests/uverbs/vendor_test" || fail 'the stand-in for the library does not judge as it should'
  broken=$(awk -v own="$1" '$1 ~ own { n[$1] += $2 } END { for (i in n) if (n[i] == 0) print i }' "$XIO_TEST_UVERBS_SESSION"/rules.*)
  [ -z "$broken" ] || fail "no call has broken these rules of the library:" <(cat <<<"$broken")
}
