# SPDX-License-Identifier: MIT
# What every package check shares: --with-NAME, the search, and the lines of the summary.

# XIO_LOST(NAME, WHAT IS LOST) and XIO_FOUND(NAME, WHERE) each add a line to the summary, and a row to what
# xio-info --version prints (build_parts.h).
AC_DEFUN([XIO_FOUND], [AS_VAR_APPEND([xio_summary], ["
  $1: $2"])
  AS_VAR_APPEND([xio_parts], [" {\"$1\", \"$2\", \"\"},"])])
AC_DEFUN([XIO_LOST], [AS_VAR_APPEND([xio_summary], ["
  $1: no; lost: $2"])
  AS_VAR_APPEND([xio_parts], [" {\"$1\", \"no\", \"lost: $2\"},"])])

# XIO_MISSING(DEBIAN PACKAGES, SENTENCE): something that this build cannot do without. Every one is named at the end, so
# that one run of configure says all that has to be installed.
AC_DEFUN([XIO_MISSING], [AS_VAR_APPEND([xio_missing], ["
  * $2"])
  AS_VAR_APPEND([xio_missing_packages], [" $1"])])

# After the last check.
AC_DEFUN([XIO_STOP_IF_MISSING], [AS_IF([test -n "$xio_missing"], [
  AS_ECHO(["
What was found, and what is lost without the others:$xio_summary"])
  set x $xio_missing_packages
  shift
  xio_cure=
  AS_IF([test $[]# -gt 0], [xio_cure="
On Debian: apt-get install $[]*"])
  AC_MSG_ERROR([this is missing and has to be there:$xio_missing$xio_cure])])])

# XIO_WITH(NAME, TEXT): --with-NAME / --without-NAME; leaves with_NAME at yes, no or auto.
AC_DEFUN([XIO_WITH], [AC_ARG_WITH([$1], [AS_HELP_STRING([--without-$1], [$2])], [],
  [AS_VAR_SET([AS_TR_SH([with_$1])], [auto])])])

# XIO_RESULT(VAR, NAME, WHERE, WHAT IS LOST): defines HAVE_VAR and the conditional by have_VAR, and writes the summary. A
# package that was asked for by name and is not there is an error.
AC_DEFUN([XIO_RESULT], [
  AM_CONDITIONAL([HAVE_$1], [test "x$have_$1" = xyes])
  AS_IF([test "x$have_$1" = xyes],
        [AC_DEFINE([HAVE_$1], [1], [Define to 1 if $2 is there.])
         XIO_FOUND([$2], [$3])],
        [AS_IF([test "x$AS_TR_SH([with_$2])" = xyes],
               [XIO_MISSING([], [--with-$2 was asked for, but $2 is not usable: see config.log])])
         XIO_LOST([$2], [$4])])])

# XIO_PACKAGE(VAR, NAME, PKG-CONFIG MODULES, HEADER, STATEMENT, LIBRARIES WITHOUT PKG-CONFIG, WHAT IS LOST,
# FLAGS WITHOUT PKG-CONFIG)
# Sets VAR_CFLAGS, VAR_LIBS and have_VAR after linking a program that runs STATEMENT.
AC_DEFUN([XIO_PACKAGE], [
  XIO_WITH([$2], [build without $2; lost: $7])
  have_$1=no
  xio_where=
  AS_IF([test "x$AS_TR_SH([with_$2])" != xno], [
    AS_IF([test -n "$3" && $PKG_CONFIG --exists "$3" 2>/dev/null],
          [$1_CFLAGS=`$PKG_CONFIG --cflags "$3"`
           # Debian 13's libhsakmt.pc names a folder without its leading slash, which libtool refuses.
           $1_LIBS=`$PKG_CONFIG --libs "$3" | sed 's,-L@<:@^/ @:>@@<:@^ @:>@*,,g'`
           xio_where=`$PKG_CONFIG --modversion "$3" | head -n 1`],
          [$1_CFLAGS="$8"
           $1_LIBS="$6"
           xio_where=yes])
    XIO_LINKS([$1], [$2], [$4], [$5])])
  AS_IF([test "x$have_$1" != xyes], [$1_CFLAGS= $1_LIBS=])
  AC_SUBST([$1_CFLAGS])
  AC_SUBST([$1_LIBS])
  XIO_RESULT([$1], [$2], [$xio_where], [$7])])

# XIO_LINKS(VAR, NAME, HEADER, STATEMENT): have_VAR=yes if a program with VAR_CFLAGS and VAR_LIBS links.
AC_DEFUN([XIO_LINKS], [
  AC_MSG_CHECKING([for $2])
  xio_save_CPPFLAGS=$CPPFLAGS xio_save_LIBS=$LIBS xio_save_CXXFLAGS=$CXXFLAGS
  CPPFLAGS="$CPPFLAGS $$1_CFLAGS" LIBS="$$1_LIBS $LIBS" CXXFLAGS="$CXXFLAGS -std=c++20 -O0"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <$3>]], [[$4]])], [have_$1=yes], [have_$1=no])
  CPPFLAGS=$xio_save_CPPFLAGS LIBS=$xio_save_LIBS CXXFLAGS=$xio_save_CXXFLAGS
  AC_MSG_RESULT([$have_$1])])
