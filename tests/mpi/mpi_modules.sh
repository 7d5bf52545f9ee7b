#!/bin/bash
# SPDX-License-Identifier: MIT
# libxio is linked with no MPI, and works with the one that a program has, or that its launcher belongs to: Open MPI and
# MPICH by the same libxio, communicators of the program as well. mpi_guest.c and mpi_comm.c look at it from inside.
set -uo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1

if [ "$sanitizer" != no ]; then skip 'programs here are linked without the sanitizer'; fi
if [ "$gpu" != host ]; then skip 'worlds of plain C programs are tried on the host platform'; fi
unset "${!XIO_@}" "${!OMPI_@}" "${!PMI_@}" "${!PMIX_@}"
export XIO_TEST_BUILDDIR=$builddir XIO_HEAP_SIZE=1M XIO_TIMEOUT_MS=20000
make_work
checks=0
expect() {
  local status=$1 said=$2 got
  shift 2
  timeout -k 5 120 "$@" >"$work/out" 2>&1
  got=$?
  checks=$((checks + 1))
  if [ "$got" = "$status" ] && { [ -z "$said" ] || grep -q -- "$said" "$work/out"; }; then return; fi
  failures=$((failures + 1))
  echo "FAIL status $got and not $status, or not '$said': $*"
  tail -n 5 "$work/out"
}
needed() { objdump -p "$1" | awk '$1 == "NEEDED" {print $2}'; }

# The loader finds all that libxio and its modules need.
for file in "$builddir"/.libs/libxio.so "$builddir"/.libs/xio-mpi-*.so; do
  if [ ! -e "$file" ]; then continue; fi
  checks=$((checks + 1))
  if needed "$file" | grep -E '^lib(mpi|mpich|ucp|ucs|pci)\.'; then
    fail "$file asks for these"
  fi
done

# Three programs for each MPI, one of communicators, and its launcher. $1 module, $2 its name, $3 library, $4 flags, $5 libraries, then launcher.
guest() {
  local out=$work/$1 source=$2
  shift 2
  "$CC" -std=gnu11 -Wall -Wextra -Werror -I"$srcdir/include" "$srcdir/tests/mpi/$source" "$@" -o "$out" \
    -L"$builddir/.libs" -lxio -Wl,-rpath,"$builddir/.libs" || exit 1
}
guest none mpi_guest.c
root=()
if [ "$(id -u)" = 0 ]; then root=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1); fi
try_abi() {
  local module=$1 name=$2 library=$3 n
  local -a flags libs run
  read -ra flags <<<"$4"
  read -ra libs <<<"$5"
  shift 5
  run=("${root[@]}" "$@")
  guest "$module.uses" mpi_guest.c -DUSES_MPI "${flags[@]}" "${libs[@]}"
  guest "$module.loads" mpi_guest.c -DLOADS_MPI="\"$library\""
  for n in 1 3; do
    for program in none "$module.uses" "$module.loads"; do
      expect 0 '' "${run[@]}" -np $n "$work/$program" $n
    done
  done

  guest "$module.comm" mpi_comm.c "${flags[@]}" "${libs[@]}"
  for n in 1 2 5; do expect 0 '' "${run[@]}" -np $n "$work/$module.comm"; done

  # Without its module, with another's and with one of another interface.
  mkdir -p "$work/alone/xio" "$work/$module.wrong"
  cp "$builddir/.libs/libxio-$gpu.so.0" "$work/alone/"
  expect 0 '' "${run[@]}" -np 2 env LD_PRELOAD="$work/alone/libxio-$gpu.so.0" "$work/$module.uses" 2 \
    "needs libxio's module for $name"
  echo 'int other = 1;' | "$CC" -shared -fPIC -xc - -o "$work/$module.wrong/xio-mpi-$module.so"
  expect 0 '' "${run[@]}" -np 1 env XIO_MODULES="$work/$module.wrong" "$work/$module.uses" 1 "is no module of libxio's"
  echo 'unsigned xio_mpi_module[8] = {1000, 160};' | "$CC" -shared -fPIC -xc - -o "$work/$module.wrong/xio-mpi-$module.so"
  expect 0 '' "${run[@]}" -np 1 env XIO_MODULES="$work/$module.wrong" "$work/$module.uses" 1 "has interface 1000 and this"

  # Moved as a whole.
  cp "$builddir/.libs/xio-mpi-$module.so" "$work/alone/xio/"
  expect 0 '' "${run[@]}" -np 2 env LD_PRELOAD="$work/alone/libxio-$gpu.so.0" "$work/$module.uses" 2
  rm -rf "$work/alone"
  echo "$name: done"
}
launcher() {
  local candidate
  for candidate in "$@"; do
    if command -v "$candidate" >/dev/null; then
      echo "$candidate"
      return
    fi
  done
}
openmpi=$(launcher mpirun.openmpi orterun)
hydra=$(launcher mpiexec.hydra mpirun.mpich mpiexec.mpich)
if has HAVE_OPENMPI && [ -n "$openmpi" ]; then
  try_abi openmpi 'Open MPI' libmpi.so.40 "$OPENMPI_CFLAGS" "$OPENMPI_LIBS" "$openmpi" --oversubscribe --bind-to none
fi
if has HAVE_MPICH && [ -n "$hydra" ]; then
  try_abi mpich MPICH libmpich.so.12 "$MPICH_CFLAGS" "$MPICH_LIBS" "$hydra"
fi

finish "mpi_modules, $checks checks"
