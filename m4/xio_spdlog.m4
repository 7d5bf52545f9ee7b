# SPDX-License-Identifier: MIT
# spdlog: the compiled library if it links, else its headers alone. Always with the fmt that we found, never its own copy.
AC_DEFUN([XIO_CHECK_SPDLOG], [
  SPDLOG_CFLAGS="`$PKG_CONFIG --cflags spdlog 2>/dev/null`"
  SPDLOG_LIBS=`$PKG_CONFIG --libs spdlog 2>/dev/null`
  have_SPDLOG=no
  xio_where="compiled library"
  AS_IF([test -n "$SPDLOG_LIBS"],
        [XIO_LINKS([SPDLOG], [spdlog], [spdlog/spdlog.h], [spdlog::drop_all();])])
  AS_IF([test "x$have_SPDLOG" != xyes],
        [SPDLOG_CFLAGS="-DSPDLOG_FMT_EXTERNAL=1 $FMT_CFLAGS" SPDLOG_LIBS="$FMT_LIBS -lpthread" xio_where="headers only"
         XIO_LINKS([SPDLOG], [spdlog, headers only], [spdlog/spdlog.h], [spdlog::drop_all();])])
  # Without fmt nothing of it compiles; then its presence is asked alone.
  AS_IF([test "x$have_FMT" != xyes],
        [XIO_LINKS([SPDLOG], [spdlog without fmt], [spdlog/version.h], [return SPDLOG_VER_MAJOR < 0;])])
  AS_IF([test "x$have_SPDLOG" != xyes],
        [XIO_MISSING([libspdlog-dev], [spdlog: install it, or give its headers with CPPFLAGS=-I])
         XIO_LOST([spdlog], [everything])],
        [xio_version=`$PKG_CONFIG --modversion spdlog 2>/dev/null`
         XIO_FOUND([spdlog], [${xio_version:+$xio_version, }$xio_where])])
  AC_SUBST([SPDLOG_CFLAGS])
  AC_SUBST([SPDLOG_LIBS])])
