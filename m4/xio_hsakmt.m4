# SPDX-License-Identifier: MIT
# libhsakmt: its header moved into a folder of its own with ROCm 6, and asking for one engine by number came with 6.1.
# These have it: ROCm to 6.2 (package hsakmt-roct-dev, hsakmt-roct-devel), ROCm 6.3 beside the HSA runtime, both as an
# archive without pkg-config below /opt/rocm; Debian 12 and 13 (libhsakmt-dev). Later the HSA runtime keeps its copy to
# itself: headers are no longer installed (ROCR-Runtime pull 256), nor the archive (ROCR-Runtime pull 342).
AC_DEFUN([XIO_CHECK_HSAKMT], [
  xio_hsakmt_cflags= xio_hsakmt_libs=-lhsakmt xio_hsakmt_header=hsakmt.h xio_hsakmt_pc=
  AS_IF([test "x$with_hsakmt" != xno && $PKG_CONFIG --exists libhsakmt 2>/dev/null], [
    xio_hsakmt_pc=libhsakmt
    HSAKMT_CFLAGS=`$PKG_CONFIG --cflags libhsakmt`
    HSAKMT_LIBS=`$PKG_CONFIG --libs libhsakmt | sed 's,-L@<:@^/ @:>@@<:@^ @:>@*,,g'`
    XIO_HSAKMT_HEADER([$HSAKMT_CFLAGS])
    # Beside ROCm's archive lies a file that does not name what the archive needs.
    XIO_LINKS([HSAKMT], [what pkg-config says of libhsakmt], [$xio_hsakmt_header], [return hsaKmtOpenKFD();])
    AS_IF([test "x$have_HSAKMT" != xyes], [xio_hsakmt_pc=])])
  AS_IF([test -z "$xio_hsakmt_pc"], [
    XIO_HSAKMT_OF_ROCM
    XIO_HSAKMT_HEADER([$xio_hsakmt_cflags])])
  XIO_PACKAGE([HSAKMT], [hsakmt], [$xio_hsakmt_pc], [$xio_hsakmt_header], [return hsaKmtOpenKFD();], [$xio_hsakmt_libs],
    [queues of AMD GPUs' copy engines (ROCm to 6.3 or Debian 12 and 13 have it)], [$xio_hsakmt_cflags])
  AC_DEFINE([HAVE_HSAKMT_HSAKMT_H], [0], [Define to 1 if hsakmt.h lies in a folder hsakmt.])
  AC_DEFINE([HAVE_HSAKMT_QUEUE_BY_ENGINE], [0], [Define to 1 if libhsakmt makes a queue on one copy engine.])
  AC_DEFINE([HAVE_HSAKMT_RECOMMENDED_ENGINES], [0], [Define to 1 if libhsakmt names the engines that suit a link.])
  AS_IF([test "x$have_HSAKMT" = xyes], [
    AS_IF([test $xio_hsakmt_header != hsakmt.h], [AC_DEFINE([HAVE_HSAKMT_HSAKMT_H], [1])])
    XIO_LINKS([HSAKMT], [hsaKmtCreateQueueExt and HSA_QUEUE_SDMA_BY_ENG_ID], [$xio_hsakmt_header],
      [return hsaKmtCreateQueueExt(0, HSA_QUEUE_SDMA_BY_ENG_ID, 100, HSA_QUEUE_PRIORITY_NORMAL, 0, 0, 0, 0, 0);])
    AS_IF([test "x$have_HSAKMT" = xyes], [AC_DEFINE([HAVE_HSAKMT_QUEUE_BY_ENGINE], [1])])
    XIO_LINKS([HSAKMT], [RecSdmaEngIdMask], [$xio_hsakmt_header],
      [HsaIoLinkProperties p = {}; return static_cast<int>(p.RecSdmaEngIdMask);])
    AS_IF([test "x$have_HSAKMT" = xyes], [AC_DEFINE([HAVE_HSAKMT_RECOMMENDED_ENGINES], [1])])
    have_HSAKMT=yes])])

# XIO_HSAKMT_HEADER(FLAGS): sets xio_hsakmt_header.
AC_DEFUN([XIO_HSAKMT_HEADER], [
  xio_hsakmt_header=hsakmt.h
  xio_save_CPPFLAGS=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $1"
  AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <hsakmt/hsakmt.h>]])], [xio_hsakmt_header=hsakmt/hsakmt.h])
  CPPFLAGS=$xio_save_CPPFLAGS])

# Below ROCm: a shared library, or an archive, whose own needs (libdrm-amdgpu, libnuma) nobody else says.
AC_DEFUN([XIO_HSAKMT_OF_ROCM], [
  AC_REQUIRE([XIO_ROCM])
  for xio_root in $xio_rocm_roots `$PKG_CONFIG --variable=prefix libhsakmt 2>/dev/null`; do
    for xio_lib in lib lib64; do
      AS_IF([test "x$xio_hsakmt_libs" != x-lhsakmt], [],
            [test -e "$xio_root/$xio_lib/libhsakmt.so"],
            [xio_hsakmt_libs="-L$xio_root/$xio_lib -Wl,-rpath,$xio_root/$xio_lib -lhsakmt"],
            [test -e "$xio_root/$xio_lib/libhsakmt.a"],
            [xio_hsakmt_libs="$xio_root/$xio_lib/libhsakmt.a -Wl,--exclude-libs,libhsakmt.a -ldrm_amdgpu -ldrm -lnuma -lpthread -lrt -ldl"])
    done
    AS_IF([test "x$xio_hsakmt_libs" != x-lhsakmt && test -z "$xio_hsakmt_cflags"],
          [xio_hsakmt_cflags="-I$xio_root/include"])
  done])
