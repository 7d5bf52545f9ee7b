# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_GNUPLOT], [
  AC_ARG_VAR([GNUPLOT], [pictures of xio-perf --plot])
  XIO_WITH([gnuplot], [draw no plots])
  have_GNUPLOT=no
  AS_IF([test "x$with_gnuplot" != xno], [AC_PATH_PROG([GNUPLOT], [gnuplot])])
  AS_IF([test -n "$GNUPLOT"], [have_GNUPLOT=yes])
  XIO_RESULT([GNUPLOT], [gnuplot], [$GNUPLOT], [pictures of xio-perf --plot])])
