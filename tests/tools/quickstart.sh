#!/bin/bash
# SPDX-License-Identifier: MIT
# quickstart for one platform and then for another in one build folder: objects of the first are not linked into the
# second. And what it makes of an AMD GPU and of ROCm. configure, the Makefile, mpirun, apt and the machine are fakes;
# nothing is installed.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TESTS

at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
unset ROCM_PATH HIP_PATH
export xio_system_root=$at/machine # where quickstart looks for /opt/rocm, /dev/kfd and PCI devices
cp "$srcdir/quickstart" "$at"
mkdir -p "$at/bin" "$at/build/examples/relay"

fake() {
  cat >"$at/$1"
  chmod +x "$at/$1"
}
# Debian's HIP is not installed, all else is.
# shellcheck disable=SC2016  # for the fake's shell
fake bin/apt-get <<<'echo "$*" >>apt-calls'
# shellcheck disable=SC2016  # for the fake's shell
fake bin/dpkg-query <<<'for last; do :; done; case $*:$last in *Version*) cat hip-version 2>/dev/null ;; *hip* | *hsa*) echo not-installed ;; *) echo installed ;; esac'
fake bin/apt-cache <<<'echo known'
# shellcheck disable=SC2016  # for the fake's shell
fake bin/sudo <<<'exec "$@"'
# shellcheck disable=SC2016  # for the fake's shell
fake bin/mpirun <<<'shift $(($# - 5)); exec "$@"' # after its options: relay --in FILE --out FILE
fake build/xiorun <<<'shift 2; exec "$@"'
# shellcheck disable=SC2016  # for the fake's shell
fake build/examples/relay/relay <<<'cp "$2" "$4"'
# The software GPU's build makes the program that runs on it; run is given launcher, -n 2, program and its arguments.
mkdir -p "$at/tests/amdgpu"
# shellcheck disable=SC2016  # for the fake's shell
fake tests/amdgpu/run <<<'echo "$XIO_AMDGPU_BUILD, $XIO_AMDGPU_GPUS GPUs: $1 $4" >>software-runs; cp "$6" "$8"'
# As the real one: the platform stands in config.status and in the Makefile, on which no object depends.
fake configure <<'END'
#!/bin/sh
platform=${1#--with-gpu=}
printf 'echo "%s"\nexit\nS["gpu"]="%s"\n' "$*" "$platform" >config.status
chmod +x config.status
printf 'all: object\nlibxio_amdgpu.la tests/amdgpu/prepare hip-gfx90a/tests/env.sh hip-gfx90a/examples/relay/relay: object\nobject:\n\techo %s >$@\nclean:\n\techo cleaned >>cleanings\n\trm -f object\n' "$platform" >Makefile
END
touch "$at/Makefile.in" "$at/build/cleanings"

# build_for PLATFORM CLEANINGS: so often was the folder cleaned by then.
build_for() {
  PATH=$at/bin:$PATH "$at/quickstart" --with-gpu="$1" >"$at/said" 2>&1 || {
    cat "$at/said"
    exit 1
  }
  local object cleanings
  object=$(cat "$at/build/object")
  cleanings=$(wc -l <"$at/build/cleanings")
  if [ "$object" != "$1" ] || [ "$cleanings" != "$2" ]; then
    echo "after quickstart --with-gpu=$1: the object is for $object, cleaned $cleanings times instead of $2"
    exit 1
  fi
}

build_for host 0
build_for host 0
touch "$at/configure" # newer: it runs again
build_for host 0
build_for cuda 1
build_for cuda 1
build_for host 2

# ---- how far it is --------------------------------------------------------------------------------------------------
# A build of four files, each a second, that says what Automake's says.
cat >"$at/build/Makefile" <<'END'
all: a.o b.o c.o d.o
a.o b.o c.o d.o:
	@echo "  CXX      " $@;sleep 1.2
END
step='\[4/6\] make       build \.\.\.'
# On no terminal: lines of their own, and the result behind the step's name again.
xio_progress_seconds=1 PATH=$at/bin:$PATH "$at/quickstart" --with-gpu=host >"$at/said" 2>&1 || {
  cat "$at/said"
  exit 1
}
for words in "^$step\$" '^        [1-4] of 4 files$' "^$step 4 files built \([0-9]+ s\)\$"; do
  if ! grep -qE "$words" "$at/said"; then
    echo "no line '$words' in:"
    cat "$at/said"
    exit 1
  fi
done
# A short step is one line, as without it.
PATH=$at/bin:$PATH "$at/quickstart" --with-gpu=host >"$at/said" 2>&1
grep -qE "^$step 4 files built" "$at/said" || {
  cat "$at/said"
  exit 1
}
# On a terminal: in place.
if command -v script >/dev/null; then
  PATH=$at/bin:$PATH script -qec "$at/quickstart --with-gpu=host" /dev/null </dev/null >"$at/said" 2>&1
  if ! grep -qE $'\r'"$step [1-4] of 4 files"$'\e\\[K' "$at/said" ||
    ! grep -qE $'\r'"$step"$'\e\\[K 4 files built' "$at/said" || [ "$(grep -c 'make       build' "$at/said")" != 1 ]; then
    echo 'on a terminal the line is not drawn in place:'
    cat -v "$at/said"
    exit 1
  fi
fi

# ---- an AMD GPU, and ROCm -------------------------------------------------------------------------------------------
# All programs of this machine but its HIP.
mkdir -p "$at/programs"
ln -sf /bin/* "$at/programs" 2>/dev/null || :
ln -sf /usr/bin/* "$at/programs"
rm -f "$at/programs/hipcc"

machine() {
  rm -rf "$at/machine" "$at/apt-calls" "$at/build/config.status"
  mkdir -p "$at/machine/dev" "$at/machine/sys/bus/pci/devices"
}
with_kfd() { touch "$at/machine/dev/kfd"; }
# with_pci VENDOR CLASS
with_pci() {
  mkdir "$at/machine/sys/bus/pci/devices/0000:c1:00.0"
  echo "$1" >"$at/machine/sys/bus/pci/devices/0000:c1:00.0/vendor"
  echo "$2" >"$at/machine/sys/bus/pci/devices/0000:c1:00.0/class"
}
# with_rocm FOLDER
with_rocm() {
  mkdir -p "$1/bin"
  printf '#!/bin/sh\n' >"$1/bin/hipcc"
  chmod +x "$1/bin/hipcc"
}
fail() {
  echo "$1"
  cat "$at/said"
  exit 1
}
run() { PATH=$at/bin:$at/programs "$at/quickstart" "$@" >"$at/said" 2>&1; }
# built OPTIONS: configure was given these.
built() {
  local given
  given=$("$at/build/config.status") || fail "nothing was configured, instead of $1"
  if [ "$given" != "$1" ]; then fail "configure was given '$given' instead of '$1'"; fi
}
# refused: one sentence with both ways out, and nothing was done.
refused() {
  local words
  for words in 'has an AMD GPU' --with-gpu=host /opt/rocm; do
    if ! grep -q -- "$words" "$at/said"; then fail "it does not say '$words' of $1"; fi
  done
  if [ -e "$at/build/config.status" ] || [ -e "$at/apt-calls" ]; then fail "$1: something was done"; fi
}
no_debian_hip() {
  if grep -q hipcc "$at/apt-calls" 2>/dev/null; then fail "Debian's HIP was installed beside ROCm"; fi
}

machine && with_kfd
if run; then fail "a machine with an AMD GPU and no hipcc was built for"; fi
refused /dev/kfd
for class in 0x030000 0x038000 0x120000; do
  machine && with_pci 0x1002 $class
  if run; then fail "an AMD GPU of class $class and no hipcc: it was built"; fi
  refused "a PCI device of class $class"
done
# Others' GPUs, and what else AMD makes.
machine && with_pci 0x10de 0x030200
run || fail "an NVIDIA GPU"
built --with-gpu=host
machine && with_pci 0x1002 0x060400
run || fail "a bridge of AMD's"
built --with-gpu=host
machine && with_kfd
run --with-gpu=host || fail "--with-gpu=host on a machine with an AMD GPU"
built --with-gpu=host

# ROCm below /opt/rocm, and where the variables say.
machine && with_kfd && with_rocm "$at/machine/opt/rocm"
run || fail "ROCm and an AMD GPU"
built "--with-gpu=hip HIPCC=$at/machine/opt/rocm/bin/hipcc"
run --with-gpu=hip || fail "--with-gpu=hip with ROCm"
no_debian_hip
for variable in ROCM_PATH HIP_PATH; do
  machine && with_kfd && with_rocm "$at/machine/opt/rocm" && with_rocm "$at/machine/other"
  export "$variable=$at/machine/other"
  run --with-gpu=hip || fail "$variable"
  unset $variable
  built "--with-gpu=hip HIPCC=$at/machine/other/bin/hipcc"
  no_debian_hip
done
# ROCm's compiler is used even if this machine has another in /usr/bin.
machine && with_kfd && with_rocm "$at/machine/opt/rocm"
PATH=$at/bin:/usr/bin:/bin "$at/quickstart" --with-gpu=hip >"$at/said" 2>&1 || fail "ROCm beside the system's programs"
built "--with-gpu=hip HIPCC=$at/machine/opt/rocm/bin/hipcc"
no_debian_hip
# A hipcc in PATH that is not the system's is the user's choice.
with_rocm "$at/machine/mine"
PATH=$at/machine/mine/bin:$at/bin:$at/programs "$at/quickstart" >"$at/said" 2>&1 || fail "a hipcc in PATH"
built "--with-gpu=hip HIPCC=$at/machine/mine/bin/hipcc"
# Without ROCm, --with-gpu=hip installs Debian's.
machine
run --with-gpu=hip || fail "--with-gpu=hip without ROCm"
grep -q 'install.* hipcc' "$at/apt-calls" || fail "Debian's HIP was not installed"
built --with-gpu=host

# ---- a GPU in software, where there is none -------------------------------------------------------------------------
# said_of STEP: its last line.
said_of() { grep -E "^\[[0-9]+/[0-9]+\] $1 " "$at/said" | tail -n 1; }
# software WORDS: the step was there, is counted, and says the words.
software() {
  [[ $(said_of amdgpu) == '[7/7] '*"$1"* ]] || fail "the software GPU's step does not say '$1'"
}
# Debian's hipcc is the one whose program lies in /usr/bin.
debian_hip() {
  ln -sf /usr/bin/true "$at/programs/hipcc"
  echo "$1" >"$at/hip-version"
}
machine
rm -f "$at/programs/hipcc"
run --with-gpu=hip || fail "--with-gpu=hip, and apt brought no hipcc"
software 'not run: no hipcc'
machine && with_rocm "$at/machine/opt/rocm"
run --with-gpu=hip || fail "--with-gpu=hip with ROCm, and no GPU"
software "not run: $at/machine/opt/rocm/bin/hipcc is not Debian's"
machine && debian_hip 5.7.1-5
run --with-gpu=hip || fail "another HIP of Debian's"
software 'alone, here is 5.7.1-5'
[ ! -e "$at/software-runs" ] || fail "something was run on the software GPU"
machine && debian_hip 5.2.3-8
run --with-gpu=hip || fail "Debian's HIP, and no GPU"
software 'on a software GPU, not silicon'
built "--with-gpu=host HIPCC=$at/programs/hipcc"
[ "$(cat "$at/software-runs")" = 'build/hip-gfx90a, 2 GPUs: build/xiorun build/hip-gfx90a/examples/relay/relay' ] ||
  fail "on the software GPU: $(cat "$at/software-runs")"
# What it relayed is compared, and a wrong byte is an error.
# shellcheck disable=SC2016  # for the fake's shell
fake tests/amdgpu/run <<<'head -c 100 "$6" >"$8"'
if run --with-gpu=hip; then fail "a file that came short on the software GPU"; fi
grep -q "step 'amdgpu' failed" "$at/said" || fail "it does not say which step failed"
# With a GPU, and where nobody asked for HIP, there is no such step.
machine && with_kfd
run --with-gpu=hip || fail "a GPU and Debian's HIP"
[ -z "$(said_of amdgpu)" ] || fail "a machine with a GPU, and the software one was used"
machine
run || fail "no GPU, and nobody asked for one"
[ -z "$(said_of amdgpu)" ] || fail "the software GPU was used without --with-gpu=hip"
