#!/bin/bash
# SPDX-License-Identifier: MIT
# What configure says of machines that lack something, and where it finds AMD's packages: everything that is missing in
# one run, hipcc and libhsakmt below ROCm, the GPUs that a hipcc can build for. Compilers and ROCm are fakes.
set -euo pipefail
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
: "${srcdir:?}" "${CXX:?}"
make_work
at=$work
unset ROCM_PATH HIP_PATH XIO_HIP_ARCH CPPFLAGS LIBS LDFLAGS CXXFLAGS CFLAGS CONFIG_SITE
export xio_system_root=$at/machine # where configure looks for /opt/rocm, /dev/kfd and PCI devices
srcdir=$(cd "$srcdir" && pwd)
out=$at/out

# configured NAME OPTION...: configure in a folder of its own, without the packages that this is not about.
configured() {
  mkdir -p "$at/$1"
  (cd "$at/$1" && "$srcdir/configure" --without-{mpi,ucx,sodium,liburing,hwloc,verbs,gtest,cli11} \
    "${@:2}") >"$out" 2>&1
}
says() { grep -qE -- "$1" "$out" || fail "configure does not say: $1" <(tail -n 40 "$out"); }

# A compiler that finds none of the required libraries, and no pkg-config file of theirs.
mkdir "$at/bin" "$at/machine"
cat >"$at/bin/g++" <<END
#!/bin/sh
for word; do
  if test -f "\$word" && grep -qE 'include <(fmt|spdlog|boost)/' "\$word" 2>/dev/null; then exit 1; fi
done
exec $CXX "\$@"
END
chmod +x "$at/bin/g++"
# No hipcc, gnuplot and help2man of this machine's.
mkdir "$at/programs"
ln -sf /bin/* "$at/programs" 2>/dev/null || :
ln -sf /usr/bin/* "$at/programs"
rm -f "$at/programs/hipcc" "$at/programs/gnuplot" "$at/programs/help2man"
export PATH=$at/programs

# ---- everything that is missing, in one run --------------------------------------------------------------------------
mkdir -p "$at/machine/dev"
touch "$at/machine/dev/kfd"
if configured lacking CXX="$at/bin/g++" --with-gnuplot; then fail "configure ended well without libraries it needs"; fi
says '^ *\* this machine has an AMD GPU \(/dev/kfd\) and no hipcc: .*/opt/rocm.*--with-gpu=host'
says '^ *\* fmt: '
says '^ *\* spdlog: '
says '^ *\* Boost.Context'
says '^ *\* --with-gnuplot was asked for'
says '^ *help2man: no; lost: manual pages of the tools'
says '^On Debian: apt-get install .*hipcc libamdhip64-dev .*libfmt-dev libspdlog-dev libboost-context-dev'
if [ -e "$at/lacking/Makefile" ]; then fail "a Makefile was made all the same"; fi

# ---- ROCm ------------------------------------------------------------------------------------------------------------
rocm=$at/machine/opt/rocm
mkdir -p "$rocm/bin" "$rocm/include/hsakmt" "$rocm/lib"
# A compiler of three GPUs.
cat >"$rocm/bin/hipcc" <<'END'
#!/bin/sh
for word; do
  case $word in
    --offload-arch=gfx942 | --offload-arch=gfx950 | --offload-arch=gfx1201) known=yes ;;
    --offload-arch=*) exit 1 ;;
  esac
done
test -n "$known"
END
chmod +x "$rocm/bin/hipcc"
# libhsakmt as ROCm has it: an archive and a header in a folder of its own.
cat >"$rocm/include/hsakmt/hsakmt.h" <<'END'
extern "C" int hsaKmtOpenKFD(void);
END
# archive FILE TEXT: of one source.
archive() {
  echo "$2" >"$at/member.c"
  ${CC:-cc} -fPIC -c "$at/member.c" -o "$at/member.o"
  ar rcs "$1" "$at/member.o"
  rm "$at/member.o"
}
archive "$rocm/lib/libhsakmt.a" 'int drmOpen(void), amdgpu_device_initialize(void), numa_available(void);
  int hsaKmtOpenKFD(void) { return drmOpen() + amdgpu_device_initialize() + numa_available(); }'
archive "$at/libdrm.a" 'int drmOpen(void) { return 0; }'
archive "$at/libdrm_amdgpu.a" 'int amdgpu_device_initialize(void) { return 0; }'
archive "$at/libnuma.a" 'int numa_available(void) { return 0; }'
# Nothing of this machine's own libhsakmt.
cat >"$at/bin/pkg-config" <<'END'
#!/bin/sh
case "$*" in *hsakmt*) exit 1 ;; esac
exec "$REAL_PKG_CONFIG" "$@"
END
export REAL_PKG_CONFIG=$PKG_CONFIG
chmod +x "$at/bin/pkg-config"

if ! configured rocm PKG_CONFIG="$at/bin/pkg-config" LDFLAGS="-L$at"; then
  fail "configure failed with ROCm below /opt/rocm"
  tail -n 20 "$out"
fi
says "^  platform: hip, device sources by $rocm/bin/hipcc -x hip --offload-arch=gfx942 --offload-arch=gfx950 --offload-arch=gfx1201$"
says '^  hsakmt: yes'
# links_hsakmt FOLDER
links_hsakmt() {
  grep -q "^HSAKMT_LIBS = $rocm/lib/libhsakmt.a .*-ldrm_amdgpu -ldrm -lnuma" "$at/$1/Makefile" ||
    fail "libhsakmt.a of ROCm is not linked with what it needs: $(grep '^HSAKMT_LIBS' "$at/$1/Makefile")"
}
links_hsakmt rocm
grep -q "^HSAKMT_CFLAGS = -I$rocm/include" "$at/rocm/Makefile" || fail "the header of ROCm's libhsakmt is not found"
grep -q "^GPU_LIBS = -L$rocm/lib" "$at/rocm/Makefile" || fail "HIP's library is not ROCm's"

# ---- the platform, and the line that says it --------------------------------------------------------------------------
# platform NAME WORDS: what the last line that is not empty says.
platform() {
  local last
  last=$(grep -v '^$' "$out" | tail -n 1)
  if [[ ! $last =~ ^'*** PLATFORM: '$1', because '$2' ***'$ ]]; then fail "the last line is '$last' instead of: $1, because $2"; fi
}
platform hip "hipcc is at $rocm/bin/hipcc: programs run on AMD GPUs alone"
# A login node, or an image: the compiler and no GPU.
rm "$at/machine/dev/kfd"
# Here pkg-config knows the archive, by a file that names none of its needs.
mkdir "$rocm/lib/pkgconfig"
cat >"$rocm/lib/pkgconfig/libhsakmt.pc" <<END
prefix=$rocm
Name: libhsakmt
Description: the compute driver's calls
Version: 1.0.6
Libs: -L$rocm/lib -lhsakmt
Cflags: -I$rocm/include
END
if ! PKG_CONFIG_PATH=$rocm/lib/pkgconfig configured login LDFLAGS="-L$at"; then fail "configure failed without a GPU"; fi
says '^checking for what pkg-config says of libhsakmt\.\.\. no'
says '^  hsakmt: yes'
links_hsakmt login
says '^  platform: hip, '
platform hip "hipcc is at $rocm/bin/hipcc: programs run on AMD GPUs alone, and this machine has none \(no /dev/kfd\); --with-gpu=host builds for its CPU"
# A GPU whose driver is not loaded.
mkdir -p "$at/machine/sys/bus/pci/devices/0000:c1:00.0"
echo 0x1002 >"$at/machine/sys/bus/pci/devices/0000:c1:00.0/vendor"
echo 0x120000 >"$at/machine/sys/bus/pci/devices/0000:c1:00.0/class"
configured driverless --no-create PKG_CONFIG="$at/bin/pkg-config" LDFLAGS="-L$at" || fail "configure failed without the driver"
platform hip ".*, and the one here \(0000:c1:00.0\) has no /dev/kfd: load the amdgpu driver"
configured forced --no-create --with-gpu=host || fail "configure --with-gpu=host failed"
platform host "--with-gpu=host asks for it: kernels run on CPU threads, and no GPU is used, although this machine has an AMD GPU \(0000:c1:00.0\); --with-gpu=hip builds for it"
# Neither.
rm -r "$at/machine"
configured neither --no-create || fail "configure failed on a machine without hipcc and GPU"
platform host "no hipcc was found: kernels run on CPU threads, and no GPU is used"

# ---- MPI by a wrapper of which little is known -------------------------------------------------------------------------
# As wrappers of MPICH's kin: they know -show, or -compile_info and -link_info, and nothing else; and a compiler that is a
# wrapper itself, as Cray's. The MPI is a fake, too.
mpi=$at/mpi
mkdir "$mpi"
rm -f "$at/programs/"mpi{cc,cxx,run,exec}*
cat >"$mpi/mpi.h" <<'END'
#define MPICH_VERSION "4.0"
#ifdef __cplusplus
extern "C"
#endif
int MPI_Initialized(int* on);
END
echo 'int MPI_Initialized(int* on) { return *on = 0; }' >"$mpi/mpi.c"
${CC:-cc} -shared -fPIC -Wl,-soname,libmpich.so.12 "$mpi/mpi.c" -o "$mpi/libmpich.so"
cp "$mpi/libmpich.so" "$mpi/libmpich.so.12"
cat >"$at/bin/pkg-config" <<'END'
#!/bin/sh
case "$*" in *mpi*) exit 1 ;; esac
exec "$REAL_PKG_CONFIG" "$@"
END
# wrapper NAME OPTION TEXT...: prints each text for its option, and knows no other.
wrapper() {
  local file=$at/bin/$1
  printf '#!/bin/sh\ncase "$*" in\n' >"$file"
  shift
  while [ $# -gt 0 ]; do
    printf '  "%s") echo "%s" ;;\n' "$1" "$2" >>"$file"
    shift 2
  done
  printf '  *) echo "unknown option" >&2; exit 1 ;;\nesac\n' >>"$file"
  chmod +x "$file"
}
wrapper mpicc-show -show "gcc -O2 -I$mpi -Wl,-z,relro -L$mpi -lmpich"
wrapper mpicc-info -compile_info "gcc -I$mpi -c" -link_info "gcc -I$mpi -L$mpi -lmpich"
printf '#!/bin/sh\nexec %s "$@" -I%s -L%s -lmpich\n' "${CC:-cc}" "$mpi" "$mpi" >"$at/bin/craycc"
chmod +x "$at/bin/craycc"
with=(--with-gpu=host --with-mpi PKG_CONFIG="$at/bin/pkg-config")
for way in show info; do
  configured $way "${with[@]}" MPICC="$at/bin/mpicc-$way" || fail "configure found no MPI by mpicc ($way)"
  says "^checking for MPICH by .*/mpicc-$way \($way\)\.\.\. yes"
  says '^  mpi: modules for MPICH, launcher'
  grep -q "^MPICH_LIBS = .*-L$mpi -lmpich" "$at/$way/Makefile" || fail "mpicc ($way) says the libraries, and they are not taken"
  grep -q "^MPICH_LIBRARY = .*libmpich.so.12.*$mpi/libmpich.so.12" "$at/$way/Makefile" ||
    fail "the module does not know the library of mpicc ($way): $(grep '^MPICH_LIBRARY' "$at/$way/Makefile")"
done
configured cray "${with[@]}" CC="$at/bin/craycc" || fail "configure found no MPI in a compiler that has it"
says '^checking for MPICH in .*/craycc itself\.\.\. yes'
says '^  mpi: modules for MPICH, launcher not found'

finish configure
