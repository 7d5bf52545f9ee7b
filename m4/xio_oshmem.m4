# SPDX-License-Identifier: MIT
# OpenSHMEM is only the rival in bench/: the library never uses it.
AC_DEFUN([XIO_CHECK_OSHMEM], [
  AC_ARG_VAR([OSHCC], [OpenSHMEM compiler wrapper, for bench/])
  AC_ARG_VAR([OSHRUN], [OpenSHMEM launcher, for bench/])
  XIO_WITH([oshmem], [build no comparison with OpenSHMEM])
  have_OSHMEM=no
  AS_IF([test "x$with_oshmem" != xno],
        [AC_PATH_PROG([OSHCC], [oshcc])
         AC_PATH_PROG([OSHRUN], [oshrun])])
  AS_IF([test -n "$OSHCC" && test -n "$OSHRUN"], [have_OSHMEM=yes])
  XIO_RESULT([OSHMEM], [oshmem], [$OSHCC], [the comparison with OpenSHMEM in bench/])])
