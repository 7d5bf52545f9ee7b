# SPDX-License-Identifier: MIT
# The platform, and the compiler of device sources (.hip).
# Sets: gpu, XIO_PLATFORM_CPPFLAGS, DEVICE_CXX, DEVICE_FLAGS, GPU_CFLAGS, GPU_LIBS, HIPCC, NVCC; where hipcc is, HIP_CFLAGS and
# HIP_LIBS, for what is built for AMD GPUs beside another platform (build-aux/beside.mk).
AC_DEFUN([XIO_GPU], [
  AC_ARG_WITH([gpu],
    [AS_HELP_STRING([--with-gpu=PLATFORM], [hip, cuda or host (default: hip where hipcc is, else host); host,hip: a libxio for AMD GPUs beside that of the host])],
    [], [with_gpu=auto])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([XIO_HIP_ARCH],
    [AMD GPUs to build for (default: all of gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1201 that hipcc knows)])
  AC_ARG_VAR([XIO_CUDA_ARCH], [NVIDIA GPU to build for, as nvcc's -arch takes it (default: sm_90)])
  : ${XIO_CUDA_ARCH="sm_90"}
  # hipcc and nvcc are looked for on every platform: tests/device compiles with those that are there.
  XIO_PROG_HIPCC
  AC_PATH_PROG([NVCC], [nvcc], [], [$PATH:/usr/local/cuda/bin])
  XIO_AMD_GPU
  xio_platform_reason="--with-gpu=$with_gpu asks for it"
  AS_IF([test "x$with_gpu" = xauto], [XIO_CHOOSE_GPU])
  xio_beside=no
  AS_CASE([$with_gpu], [*,hip], [with_gpu=${with_gpu%,hip} xio_beside=hip])
  AC_MSG_CHECKING([which GPU platform])
  AC_MSG_RESULT([$with_gpu])
  gpu=$with_gpu
  GPU_CFLAGS= GPU_LIBS=
  AS_CASE([$gpu],
    [host], [DEVICE_CXX=$CXX DEVICE_FLAGS="-x c++"],
    [hip], [XIO_GPU_HIP],
    [cuda], [XIO_GPU_CUDA],
    [AC_MSG_ERROR([--with-gpu=$gpu is not known; use hip, cuda or host])])
  AS_CASE([$xio_beside/$gpu],
    [hip/host], [XIO_HIP_SIDE
     AS_IF([test -z "$HIPCC"], [XIO_HIP_IS_MISSING], [XIO_HIP_TARGETS])],
    [hip/*], [AC_MSG_ERROR([--with-gpu=$gpu,hip is not known; use host,hip])],
    [XIO_HIP_SIDE])
  AS_IF([test $xio_beside = hip], [hip_beside=yes], [hip_beside=no])
  AC_SUBST([hip_beside])
  AC_SUBST([HIP_CFLAGS])
  AC_SUBST([HIP_LIBS])
  XIO_PLATFORM_CPPFLAGS=-DXIO_PLATFORM_`echo $gpu | tr a-z A-Z`=1
  # -R is libtool's word; others know -Wl,-rpath.
  XIO_PC_LIBS=`echo "$GPU_LIBS" | sed 's/-R/-Wl,-rpath,/g'`
  AC_SUBST([gpu])
  AC_SUBST([XIO_PC_LIBS])
  AC_SUBST([XIO_PLATFORM_CPPFLAGS])
  AC_SUBST([DEVICE_CXX])
  AC_SUBST([DEVICE_FLAGS])
  AC_SUBST([GPU_CFLAGS])
  AC_SUBST([GPU_LIBS])
  AM_CONDITIONAL([GPU_HOST], [test "$gpu" = host])
  AM_CONDITIONAL([GPU_HIP], [test "$gpu" = hip])
  AM_CONDITIONAL([GPU_CUDA], [test "$gpu" = cuda])
  AM_CONDITIONAL([HAVE_HIPCC], [test -n "$HIPCC"])
  AM_CONDITIONAL([HAVE_NVCC], [test -n "$NVCC"])
  XIO_FOUND([platform], [$gpu, device sources by $DEVICE_CXX $DEVICE_FLAGS])
  AS_IF([test -n "$HIPCC"], [XIO_FOUND([hipcc], [$HIPCC])],
        [XIO_LOST([hipcc], [the AMD platform and the device code tests for AMD])])
  AS_IF([test -n "$NVCC"], [XIO_FOUND([nvcc], [$NVCC])],
        [XIO_LOST([nvcc], [the NVIDIA platform and the device code test for NVIDIA])])])

# The platform where nobody named one. Where hipcc is, the build is for AMD GPUs, also on a login node or in an image
# that has none: it runs elsewhere. A machine with an AMD GPU is not built for its CPU without a word.
AC_DEFUN([XIO_CHOOSE_GPU], [
  with_gpu=host xio_platform_reason="no hipcc was found"
  AS_IF([test -n "$HIPCC"], [with_gpu=hip xio_platform_reason="hipcc is at $HIPCC"],
        [test -n "$xio_amd_gpu"],
        [XIO_MISSING([hipcc libamdhip64-dev],
           [this machine has an AMD GPU ($xio_amd_gpu) and no hipcc: install ROCm (below /opt/rocm, or set ROCM_PATH) or Debian's hipcc, or set HIPCC; --with-gpu=host builds for the CPU all the same])])])

# The last line of configure: which platform, why, and what that means on this machine.
AC_DEFUN([XIO_PLATFORM_LINE], [
  AS_CASE([$gpu],
    [hip], [xio_platform_means="programs run on AMD GPUs alone"
      AS_CASE(["$xio_amd_gpu"],
        [/dev/kfd], [],
        [""], [AS_VAR_APPEND([xio_platform_means], [", and this machine has none (no /dev/kfd); --with-gpu=host builds for its CPU"])],
        [AS_VAR_APPEND([xio_platform_means], [", and the one here ($xio_amd_gpu) has no /dev/kfd: load the amdgpu driver"])])],
    [cuda], [xio_platform_means="programs run on NVIDIA GPUs alone"],
    [xio_platform_means="kernels run on CPU threads, and no GPU is used"
     AS_IF([test -n "$xio_amd_gpu"],
           [AS_VAR_APPEND([xio_platform_means], [", although this machine has an AMD GPU ($xio_amd_gpu); --with-gpu=hip builds for it"])])])
  AS_ECHO(["*** PLATFORM: $gpu, because $xio_platform_reason: $xio_platform_means ***
"])])

# XIO_HIP_ARCH: what hipcc can build of the GPUs that XIO knows.
AC_DEFUN([XIO_HIP_TARGETS], [
  AC_MSG_CHECKING([which AMD GPUs $HIPCC builds for])
  AS_IF([test -z "$XIO_HIP_ARCH"], [
    AS_ECHO(["#include <hip/hip_runtime.h>"]) >conftest.hip
    AS_ECHO(["__global__ void nothing() {}"]) >>conftest.hip
    for xio_arch in gfx90a gfx942 gfx950 gfx1030 gfx1100 gfx1201; do
      AS_IF([$HIPCC -x hip --offload-arch=$xio_arch $HIP_CFLAGS -c conftest.hip -o conftest.$ac_objext >&AS_MESSAGE_LOG_FD 2>&1],
            [AS_VAR_APPEND([XIO_HIP_ARCH], ["${XIO_HIP_ARCH:+ }$xio_arch"])])
    done
    rm -f conftest.hip conftest.$ac_objext])
  AC_MSG_RESULT([${XIO_HIP_ARCH:-none}])
  AS_IF([test -z "$XIO_HIP_ARCH"],
        [XIO_MISSING([], [$HIPCC compiles for none of the GPUs that XIO knows (see config.log): set XIO_HIP_ARCH, or HIPCC to another; --with-gpu=host builds for the CPU])])])

AC_DEFUN([XIO_HIP_IS_MISSING], [XIO_MISSING([hipcc libamdhip64-dev],
  [--with-gpu=hip needs hipcc: install ROCm (below /opt/rocm, or set ROCM_PATH) or Debian's hipcc, or set HIPCC])])

# A HIP below /opt/rocm brings its own headers and libraries; Debian's are in the system's paths.
AC_DEFUN([XIO_HIP_SIDE], [
  xio_hip_root=`dirname "\`dirname "$HIPCC"\`"`
  HIP_CFLAGS=-D__HIP_PLATFORM_AMD__=1
  HIP_LIBS=-lamdhip64
  AS_IF([test "x$xio_hip_root" != x/usr],
        [HIP_CFLAGS="$HIP_CFLAGS -isystem $xio_hip_root/include"
         HIP_LIBS="-L$xio_hip_root/lib -R$xio_hip_root/lib -lamdhip64"])])

AC_DEFUN([XIO_GPU_HIP], [
  DEVICE_CXX=$HIPCC
  DEVICE_FLAGS="-x hip"
  XIO_HIP_SIDE
  GPU_CFLAGS=$HIP_CFLAGS GPU_LIBS=$HIP_LIBS
  AS_IF([test -z "$HIPCC"], [XIO_HIP_IS_MISSING], [XIO_HIP_TARGETS])
  for xio_arch in $XIO_HIP_ARCH; do DEVICE_FLAGS="$DEVICE_FLAGS --offload-arch=$xio_arch"; done])

AC_DEFUN([XIO_GPU_CUDA], [
  AS_IF([test -z "$NVCC"], [XIO_MISSING([], [--with-gpu=cuda needs nvcc: install the CUDA toolkit or set NVCC])],
        [XIO_CUDA_TOOLKIT])])

AC_DEFUN([XIO_CUDA_TOOLKIT], [
  # Through links: /usr/bin/nvcc may point into the toolkit.
  CUDA_HOME=`readlink -f "$NVCC"`
  CUDA_HOME=`dirname "\`dirname "$CUDA_HOME"\`"`
  AS_IF([test -e "$CUDA_HOME/include/cuda_runtime.h"], [],
        [AC_MSG_ERROR([no include/cuda_runtime.h below $CUDA_HOME, where $NVCC is; set NVCC to the toolkit's own])])
  DEVICE_CXX=$NVCC
  DEVICE_FLAGS="-x cu -arch=$XIO_CUDA_ARCH --expt-relaxed-constexpr"
  xio_cuda_lib=$CUDA_HOME/lib64
  test -d "$xio_cuda_lib" || xio_cuda_lib=$CUDA_HOME/lib
  GPU_CFLAGS="-isystem $CUDA_HOME/include"
  GPU_LIBS="-L$xio_cuda_lib -R$xio_cuda_lib -lcudart"
  AC_SUBST([CUDA_HOME])])
