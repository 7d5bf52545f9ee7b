# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_SUMMARY], [AS_ECHO(["
XIO $PACKAGE_VERSION, into $prefix$xio_summary
"])])
