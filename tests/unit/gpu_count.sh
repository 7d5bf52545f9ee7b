#!/bin/bash
# SPDX-License-Identifier: MIT
# How many GPUs the scripts of tests take a run to have (gpus in tests/env.sh): what CUDA takes of CUDA_VISIBLE_DEVICES.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}" "${gpu:?}"
gpu=cuda
expect() {
  local found
  found=$(CUDA_VISIBLE_DEVICES=$2 gpus)
  if [ "$found" != "$1" ]; then
    fail "CUDA_VISIBLE_DEVICES='$2' makes $found GPUs, expected $1"
  fi
}
expect 0 ''
expect 1 0
expect 2 0,1
expect 3 3,0,2
expect 1 GPU-8932f937-d72c-4106-c12f-20bd9faed9f6
expect 0 -1
expect 0 -1,0
expect 1 1,-1,0
if CUDA_VISIBLE_DEVICES=0 crowded 1; then fail 'one PE on one GPU is crowded'; fi
if ! CUDA_VISIBLE_DEVICES=0 crowded 2; then fail 'two PEs on one GPU are not crowded'; fi
finish gpu_count
