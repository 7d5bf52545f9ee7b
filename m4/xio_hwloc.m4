# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_HWLOC], [XIO_PACKAGE([HWLOC], [hwloc], [hwloc], [hwloc.h], [return hwloc_get_api_version() == 0;], [-lhwloc],
  [machines described as XML; distances of GPUs, NICs and drives are read from sysfs paths])])
