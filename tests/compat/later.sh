#!/bin/bash
# SPDX-License-Identifier: MIT
# Calls of rocSHMEM that this version does not have are refused by the compiler, with a sentence that names the call.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${CXX:?}" "${HIPCC=}" "${work=}"
make_work

# refused NAME... -- COMPILER...: in a program that calls these alone.
refused() {
  local names=() name
  while [ "$1" != -- ]; do
    names+=("$1")
    shift
  done
  shift
  {
    echo '#include <rocshmem/rocshmem.hpp>'
    echo 'using namespace rocshmem;'
    echo 'void call(float* to, const float* from) {'
    for name in "${names[@]}"; do echo "  $name(to, from, 1, 0);"; done
    echo '}'
  } >"$work/calls.cpp"
  if "$@" -fsyntax-only -std=c++20 -I"$srcdir/include" -I"$srcdir/include/xio/compat" "$work/calls.cpp" >"$work/out" 2>&1; then
    fail "$1 takes ${names[*]}"
  fi
  for name in "${names[@]}"; do
    grep -qE "$name (of the host )?comes in a later version of XIO" "$work/out" && continue
    fail "$1 says nothing of $name:" "$work/out"
  done
}
of_streams=(rocshmem_barrier_all_on_stream rocshmem_putmem_on_stream rocshmem_signal_wait_until_on_stream)
of_host=(rocshmem_float_broadcast rocshmem_ctx_float_sum_reduce rocshmem_uint64_xor_reduce)
refused "${of_streams[@]}" "${of_host[@]}" -- "$CXX" -x c++
copies=(rocshmem_putmem rocshmem_getmem_nbi rocshmem_ctx_float_put rocshmem_float_g rocshmem_int_atomic_fetch_add)
if [ -n "$HIPCC" ]; then refused "${copies[@]}" rocshmem_quiet_on_stream -- "$HIPCC" -x hip --cuda-host-only -ferror-limit=0; fi
finish later
