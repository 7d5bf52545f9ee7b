#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs into an empty folder and builds programs and every example against that, by pkg-config alone and by CMake
# alone: what a user does.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"

root=$builddir/tests/install/root
rm -rf "$root"
mkdir -p "$root"
# A make of its own, not a part of the one that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS LDFLAGS
make -s -C "$builddir" install DESTDIR="$root" >"$root.log" 2>&1 || {
  tail -n 30 "$root.log"
  exit 1
}

# XIO's own folders are below this one; those of other libraries that it names, as CUDA's, are where they are.
pc=$(find "$root" -name xio.pc)
export PKG_CONFIG_PATH=${pc%/*}
libdir=$(dirname "$(find "$root" -name libxio.so)")
sources=$(dirname "$(find "$root" -name hello_put.hip)")
include=$(dirname "$(dirname "$(find "$root" -name xio.h)")")
# They lie below another folder than they were made for, and are found there.
pkg_config() { "$PKG_CONFIG" "$@" xio; }
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
sanitize=()
if [ "$sanitizer" != no ]; then sanitize=("-fsanitize=$sanitizer"); fi

# The program in README.md is a whole one.
awk '/^```cpp$/ {on = 1; next} /^```$/ {on = 0} on' "$srcdir/README.md" >"$root/readme.hip"

# Words of a list are flags: splitting is the point. Not optimised: whether it builds is what is asked.
# shellcheck disable=SC2046
device_program() {
  local source=$1 out=$2
  device_compile $(pkg_config --variable=device_flags) $(pkg_config --cflags) -O0 -Wall -Wextra -Werror -c "$source" -o "$out.o"
  $CXX "${sanitize[@]}" "$out.o" -o "$out" $(pkg_config --libs)
}
# shellcheck disable=SC2046
$CC -std=c99 -Wall -Wextra -Wpedantic -Werror "${sanitize[@]}" "$srcdir/tests/install/plain.c" -o "$root/plain" \
  $(pkg_config --cflags --libs)
device_program "$srcdir/tests/install/hello.hip" "$root/hello"
device_program "$root/readme.hip" "$root/readme"
examples=(hello_put ping_pong halo gups moe_alltoall two_level_allreduce stream_allreduce moe_survivors kv_fetch relay/relay sdma_allgather sdma_p2p)
mkdir "$root/by-pkg-config" "$root/by-pkg-config/relay"
for example in "${examples[@]}"; do
  device_program "$sources/$example.hip" "$root/by-pkg-config/$example"
done
echo "pkg-config: ${#examples[@]} examples built"
# By xiocc, in one step and in two; a HIP program with its own include, by the flags of a package.
xiocc=$(find "$root" -path '*/bin/xiocc')
CXX=$CXX "$xiocc" -O0 -Wall -Wextra -Werror "${sanitize[@]}" "$srcdir/tests/install/hello.hip" -o "$root/in-one"
CXX=$CXX "$xiocc" -O0 -c "${sanitize[@]}" "$srcdir/tests/install/hello.hip" -o "$root/two.o"
CXX=$CXX "$xiocc" "${sanitize[@]}" "$root/two.o" -o "$root/in-two"
cat >"$root/names.cpp" <<'EOF'
#include <hip/hip_runtime.h>
__global__ void k(float4 *v) {
  extern __shared__ float room[];
  room[threadIdx.x] = sqrtf(v->y) + max(1, 2) + __clz(1);
  __syncthreads();
  if (threadIdx.x == 0) v->x = room[63];
}
int main() {
  float4 *v = nullptr;
  if (hipMallocManaged(reinterpret_cast<void **>(&v), sizeof *v) != hipSuccess) return 2;
  v->y = 16;
  k<<<1, 64,
      64 * sizeof(float)>>>(v);
  return hipDeviceSynchronize() == hipSuccess && v->x == 4 + 2 + 31 ? 0 : 1;
}
EOF
XIOCC_PACKAGE=xio-hip-names CXX=$CXX "$xiocc" -O0 -x hip "$root/names.cpp" -o "$root/names"
if [ "$gpu" = host ]; then "$root/names"; fi
# With engines and families left out, which the program then tells the library.
# shellcheck disable=SC2046
device_compile $(pkg_config --define-variable=engines=direct+rdma --define-variable=families=mlx5 --variable=device_flags) \
  $(pkg_config --cflags) -O0 -Wall -Wextra -Werror -c "$srcdir/tests/install/hello.hip" -o "$root/fewer.o"
if ! nm "$root/fewer.o" | grep -q xio_internal_program_has; then
  echo "FAIL pkg-config's engines and families do not reach the kernels"
  exit 1
fi
if nm "$root/hello.o" | grep -q xio_internal_program_has; then
  echo "FAIL a program with all engines tells of it"
  exit 1
fi

# CMake finds it by the prefix, refuses a version that this is not, and builds the same.
by_cmake() {
  local prefix=${pc%/lib/*} log=$root.log
  if ! command -v cmake >/dev/null; then
    echo 'not tried: find_package(xio), for want of cmake'
    return
  fi
  local compiler=$CXX how="-O0 -Wall -Wextra -Werror ${sanitize[*]}"
  case $gpu in
    host) ;;
    hip) compiler=$HIPCC ;;
    *)
      echo "not tried: find_package(xio) on platform $gpu"
      return
      ;;
  esac
  for version in 9 0.2; do
    echo "find_package(xio $version PATHS $prefix QUIET)
      if(xio_FOUND)
        message(FATAL_ERROR \"find_package(xio $version) takes this XIO\")
      endif()" >"$root/version.cmake"
    cmake -P "$root/version.cmake"
  done
  {
    CXX=$compiler CXXFLAGS=$how cmake -S "$sources" -B "$root/by-cmake" -DCMAKE_PREFIX_PATH="$prefix" &&
      cmake --build "$root/by-cmake" -j 2
  } >>"$log" 2>&1 || {
    tail -n 30 "$log"
    return 1
  }
  for example in "${examples[@]}"; do test -x "$root/by-cmake/${example##*/}"; done
  echo "CMake: ${#examples[@]} examples built"
}
by_cmake

# A project in C links with it too, also when a part of it that has nothing to do with XIO is in C++.
c_by_cmake() {
  if ! command -v cmake >/dev/null; then return; fi
  local at=$root/c-alone
  mkdir -p "$at/other"
  echo "enable_language(CXX)" >"$at/other/CMakeLists.txt"
  echo "cmake_minimum_required(VERSION 3.21)
    project(c_alone LANGUAGES C)
    if(OTHER)
      add_subdirectory(other)
    endif()
    find_package(xio REQUIRED)
    add_executable(plain $srcdir/tests/install/plain.c)
    target_link_libraries(plain PRIVATE xio::xio)" >"$at/CMakeLists.txt"
  local other
  for other in OFF ON; do
    {
      CC=$CC CXX=$CXX CFLAGS="-Wall -Wextra -Wpedantic -Werror ${sanitize[*]}" \
        cmake -S "$at" -B "$at/$other" -DOTHER=$other -DCMAKE_PREFIX_PATH="${pc%/lib/*}" && cmake --build "$at/$other"
    } >"$root.log" 2>&1 || {
      tail -n 30 "$root.log"
      return 1
    }
    "$at/$other/plain"
  done
  echo "CMake: a C program built"
}
c_by_cmake

"$root/plain"
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then
  echo "built; not run: no AMD GPU here"
else
  "$root/hello"
  (unset LD_LIBRARY_PATH && "$root/in-one" && "$root/in-two")
  "$start" -n 2 "$root/readme"
  for by in "$root"/by-*; do "$start" -n 2 "$by/halo" 8 3; done
fi

# Nothing of src/ may be needed, and every header of the device API stands on its own.
if [ "$gpu" = host ]; then
  find "$include/xio" -name '*.hpp' | while read -r header; do
    echo "#include \"$header\"" | $CXX -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I"$include" -x c++ -
  done
fi

bash "$srcdir/tests/install/names.sh" "$libdir/libxio.so"

# The links of the installed pages lead to files.
doc=$(dirname "$sources")
while read -r page target; do
  if [ ! -e "$(dirname "$page")/$target" ]; then echo "$page links to $target, which is not installed" && exit 1; fi
done < <(find "$doc" -name '*.md' | while read -r page; do
  grep -oE '\]\((docs|examples)/[^)#]*' "$page" | sed "s|^](|$page |"
done)
test -s "$doc/docs/api.md" && test -s "$doc/LICENSE"

# Tools carry no lines of source.
if [ "$gpu" = host ] && [ "$sanitizer" = no ]; then
  big=$(find "$root" -path '*/bin/xio*' -type f -size +4600k)
  if [ -n "$big" ]; then echo "more than 4.6 MB: $big" && exit 1; fi
fi

# An uninstall leaves no file, and no folder of XIO's.
rm -rf "$root"/by-* "$root/c-alone"
make -s -C "$builddir" uninstall DESTDIR="$root" >>"$root.log" 2>&1
left=$(cd "$root" && find . -mindepth 2 \( ! -type d -o -type d -empty -path '*xio*' \))
if [ -n "$left" ]; then
  echo "left behind by make uninstall:"
  echo "$left"
  exit 1
fi
rm -rf "$root" "$root.log"
