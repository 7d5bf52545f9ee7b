# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_HSAKMT], [XIO_PACKAGE([HSAKMT], [hsakmt], [libhsakmt], [hsakmt.h], [return hsaKmtOpenKFD();], [-lhsakmt],
  [SDMA engines of AMD GPUs])])
