# SPDX-License-Identifier: MIT
# The software devices: on unless told otherwise.
AC_DEFUN([XIO_MODEL], [
  AC_ARG_ENABLE([model],
    [AS_HELP_STRING([--disable-model], [build without the software NIC, SDMA engine and NVMe drive])],
    [], [enable_model=yes])
  AM_CONDITIONAL([ENABLE_MODEL], [test "x$enable_model" != xno])
  AS_IF([test "x$enable_model" != xno],
        [AC_DEFINE([XIO_ENABLE_MODEL], [1], [Define to 1 to build the software devices.])
         XIO_FOUND([model], [yes])],
        [XIO_LOST([model], [software devices: only hardware and the direct route remain])])])
