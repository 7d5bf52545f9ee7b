# SPDX-License-Identifier: MIT
# The pages are made of what the tools print, so the tools have to run on this machine.
AC_DEFUN([XIO_CHECK_HELP2MAN], [
  AC_ARG_VAR([HELP2MAN], [manual pages of the tools])
  XIO_WITH([help2man], [make no manual pages of the tools])
  have_HELP2MAN=no
  AS_IF([test "x$with_help2man" != xno && test "x$cross_compiling" != xyes], [AC_PATH_PROG([HELP2MAN], [help2man])])
  AS_IF([test -n "$HELP2MAN"], [have_HELP2MAN=yes])
  XIO_RESULT([HELP2MAN], [help2man], [$HELP2MAN], [manual pages of the tools])])
