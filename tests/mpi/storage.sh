#!/bin/bash
# SPDX-License-Identifier: MIT
# Storage through the public API: doorbells rung in every way, data named by SGLs and by PRP lists, short and chained.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${work=}"
grep -q '^#define XIO_ENABLE_MODEL 1' "$builddir/config.h" || skip 'storage over files needs the software devices'
make_work

# try WAY WHAT VARIABLE=VALUE...: WAY is how the log must say that doorbells are rung
try() {
  local way=$1 what=$2 out start=$SECONDS
  shift 2
  if out=$(env XIO_BOOTSTRAP=local XIO_LOG_LEVEL=info "$@" timeout -k 5 200 "$builddir/tests/mpi/storage" "$work" 2>&1); then
    echo "ok   $what ($((SECONDS - start)) s): $(sed -n 's/^doorbells per/doorbells per/p' <<<"$out")"
  else
    fail "$what: status $?" <(grep -v ' info: ' <<<"$out" | tail -n 30)
  fi
  # A drive that reaches for memory which was taken away from it.
  if grep 'in memory that is not mapped' <<<"$out"; then
    fail "$what: memory was unmapped before its commands ended"
  fi
  if ! grep -q "doorbells $way" <<<"$out"; then
    fail "$what: nothing says that doorbells are rung by $way"
  fi
}

try bar 'registers, SGLs' XIO_NVME_SGL=1
try bar 'registers, long PRP lists' XIO_NVME_DOORBELL=bar XIO_NVME_SGL=0 XIO_NVME_MDTS=8M
try shadow 'shadow words, short PRP lists' XIO_NVME_DOORBELL=shadow XIO_NVME_SGL=0 XIO_NVME_MDTS=8k
try host 'the host rings' XIO_NVME_DOORBELL=host XIO_HOST_WAVE=32
try bridge 'a bridge rings' XIO_NVME_DOORBELL=bridge
if out=$(timeout -k 5 200 "$builddir/xiorun" -n 3 "$builddir/tests/mpi/storage" "$work" 2>&1); then
  echo 'ok   one file of three PEs'
else
  fail "one file of three PEs: status $?" <(tail -n 30 <<<"$out")
fi
finish storage
