#!/bin/bash
# SPDX-License-Identifier: MIT
# The step of xiocc over a HIP program's source: the program behind it compiles and computes the same.
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${srcdir:?}" "${builddir:?}" "${gpu:?}"
command -v perl >/dev/null || skip 'perl is not installed'
[ "$gpu" = host ] || skip 'the source is for the host platform'
make_work
awk '/perl -0p .*<<.EOF/ {on = 1; next} /^EOF$/ {on = 0} on' "$srcdir/src/tools/xiocc" >"$work/launches.pl"
[ -s "$work/launches.pl" ] || { echo 'FAIL: xiocc has no step'; exit 1; }
cat >"$work/program.cpp" <<'PROGRAM'
#include <xio/hip.h>
#include <cstdio>
template <class T, int Times>
__global__ void scaled(T* out) {
  extern __shared__ unsigned char room[];
  T* shared = reinterpret_cast<T*>(room);
  shared[threadIdx.x] = static_cast<T>(threadIdx.x * Times);
  __syncthreads();
  out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
__global__ void add(int* out, int n) { *out += n; }
static int count;
__global__ void nothing() { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }
int main() {
  int out[8] = {}, sum = 1;
  scaled<int, 3><<<dim3(1, 1), 8, 8 * sizeof(int)>>>(out);
  add<<<1, 1, 0, 0>>>(&sum, (2 + 3));
  nothing<<<dim3(2), dim3(3)>>>();
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  for (int i = 0; i < 8; ++i)
    if (out[i] != (7 - i) * 3) return 2;
  std::printf("%d %d\n", sum, count);
}
PROGRAM
perl -0p "$work/launches.pl" "$work/program.cpp" >"$work/program.hip" || exit 1
if grep -n '<<<\|extern' "$work/program.hip"; then echo 'FAIL: the step left some'; exit 1; fi
"$CXX" -std=c++20 -Wall -Wextra -I"$srcdir/include" -x c++ -c "$work/program.hip" -o "$work/program.o" || exit 1
"$CXX" "$work/program.o" -L"$builddir/.libs" -lxio -Wl,-rpath,"$builddir/.libs" -o "$work/program" || exit 1
out=$("$work/program")
[ "$out" = '6 6' ] || { echo "FAIL: '$out', expected '6 6'"; exit 1; }
