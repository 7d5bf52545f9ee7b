#!/bin/bash
# SPDX-License-Identifier: MIT
# A CUDA build reports in one sentence each thing that it lacks on a machine. fake_cudart.c hides what this machine does
# have; cases that need a GPU, or two, are tried where they are.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/../tools/said.sh" || exit 1
info=$builddir/xio-info
unset "${!XIO_@}" 2>/dev/null
# shellcheck disable=SC2086  # CC may be two words
$CC -shared -fPIC -Wall -Wextra -Werror "$srcdir/tests/unit/fake_cudart.c" -o "$work/fake.so" -ldl || exit 1

# run STATUS SETTING... -- PROGRAM...: $out is all that it printed.
run() {
  local expected=$1 got settings=()
  shift
  while [ "$1" != -- ]; do settings+=("$1"); shift; done
  shift
  out=$(env "${settings[@]}" timeout -k 5 120 "$@" 2>&1)
  got=$?
  checks=$((checks + 1))
  # A launcher's status is its own.
  if [ $((got != 0)) != "$expected" ]; then wrong "status $got: ${settings[*]} $*"; fi
}
fake() { run "$1" "LD_PRELOAD=$work/fake.so" "${@:2}"; }

fake 1 XIO_TEST_FAKE_DRIVER=12020 -- "$info" --world
says 'the NVIDIA driver supports CUDA 12\.2 and this build needs 1[0-9]\.[0-9]+; update the driver or build with an older toolkit'
fake 1 XIO_TEST_FAKE_NO_GPU=1 -- "$info" --world
says 'no NVIDIA GPU can be used \(.*\); check nvidia-smi and CUDA_VISIBLE_DEVICES'
run 1 CUDA_VISIBLE_DEVICES= -- "$info" --world
says 'no NVIDIA GPU can be used'
run 1 CUDA_VISIBLE_DEVICES= -- "$builddir/xio-perf" put_lat
says 'xio-perf: no NVIDIA GPU can be used'

gpus=$(gpus)
if [ "$gpus" = 0 ]; then echo 'not tried: what wants a GPU, for there is none'; fi
if [ "$gpus" -ge 1 ]; then
  run 1 XIO_HEAP_SIZE=1T -- "$info" --world
  says 'a heap of [0-9]+ bytes in the memory of device 0, of which [0-9]+ of [0-9]+ bytes are free; lower XIO_HEAP_SIZE'
  n=$((gpus + 1))
  run 0 XIO_GPU_SHARING=yes -- "$start" -n $n "$info" --world
  says "Routes of PE $gpus of $n"
  run 1 XIO_GPU_SHARING=no -- "$start" -n $n "$info" --world
  says "PE 0 and PE $gpus have the same GPU, [0-9a-f:.]+, and XIO_GPU_SHARING=no; $gpus can be seen here"
  run 0 XIO_GPU_SHARING=no -- "$start" -n "$gpus" "$info" --world
fi
if [ "$gpus" -ge 2 ]; then
  fake 1 XIO_TEST_FAKE_NO_PEERS=1 XIO_ROUTE=direct -- "$start" -n 2 "$info" --world
  says 'the heap of PE 1 on this machine cannot be mapped: device 0 cannot reach the memory of device 1; they are not linked'
  if has XIO_ENABLE_MODEL; then
    fake 0 XIO_TEST_FAKE_NO_PEERS=1 -- "$start" -n 2 "$info" --world
    says 'cannot reach the memory of device 1.*go by RDMA'
    says 'pe1_8 +rdma'
  else
    fake 1 XIO_TEST_FAKE_NO_PEERS=1 -- "$start" -n 2 "$info" --world
    says 'cannot reach the memory of device 1.*go by RDMA'
  fi
fi

finish
