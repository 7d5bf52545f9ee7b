# SPDX-License-Identifier: MIT
# libhsakmt: its header moved into a folder of its own with ROCm 6, and asking for one engine by number came with 6.1.
AC_DEFUN([XIO_CHECK_HSAKMT], [
  xio_hsakmt_header=hsakmt.h
  AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <hsakmt/hsakmt.h>]])], [xio_hsakmt_header=hsakmt/hsakmt.h])
  XIO_PACKAGE([HSAKMT], [hsakmt], [libhsakmt], [$xio_hsakmt_header], [return hsaKmtOpenKFD();], [-lhsakmt],
    [queues of AMD GPUs' copy engines])
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
