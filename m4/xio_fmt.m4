# SPDX-License-Identifier: MIT
# fmt: the compiled library if it links, else its headers alone.
AC_DEFUN([XIO_CHECK_FMT], [
  FMT_CFLAGS=`$PKG_CONFIG --cflags fmt 2>/dev/null`
  FMT_LIBS=`$PKG_CONFIG --libs fmt 2>/dev/null || echo -lfmt`
  XIO_LINKS([FMT], [fmt], [fmt/format.h], [return fmt::format("{}", 1).size() != 1;])
  xio_where="compiled library"
  AS_IF([test "x$have_FMT" != xyes],
        [FMT_CFLAGS=-DFMT_HEADER_ONLY=1 FMT_LIBS= xio_where="headers only"
         XIO_LINKS([FMT], [fmt, headers only], [fmt/format.h], [return fmt::format("{}", 1).size() != 1;])])
  AS_IF([test "x$have_FMT" != xyes],
        [XIO_MISSING([libfmt-dev], [fmt: install it, or give its headers with CPPFLAGS=-I])
         XIO_LOST([fmt], [everything])],
        [xio_version=`$PKG_CONFIG --modversion fmt 2>/dev/null`
         XIO_FOUND([fmt], [${xio_version:+$xio_version, }$xio_where])])
  AC_SUBST([FMT_CFLAGS])
  AC_SUBST([FMT_LIBS])])
