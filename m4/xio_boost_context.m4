# SPDX-License-Identifier: MIT
# Boost.Context: the fibers that the host executor runs GPU threads on. Required on the host platform, unused elsewhere.
AC_DEFUN([XIO_CHECK_BOOST_CONTEXT], [
  BOOST_CONTEXT_CFLAGS=
  BOOST_CONTEXT_LIBS=-lboost_context
  have_BOOST_CONTEXT=no
  AS_IF([test "$gpu" = host],
        [XIO_LINKS([BOOST_CONTEXT], [Boost.Context], [boost/context/fiber.hpp],
                   [boost::context::fiber f([](boost::context::fiber&& from) { return std::move(from); }); f = std::move(f).resume();])
         AC_DEFINE([HAVE_BOOST_CONTEXT], [1], [Define to 1 if Boost.Context is there.])
         AS_IF([test "x$have_BOOST_CONTEXT" != xyes],
               [XIO_MISSING([libboost-context-dev], [Boost.Context, which the host platform needs: install it])
                XIO_LOST([boost-context], [the host platform])],
               [xio_version=`echo BOOST_LIB_VERSION | $CXX $CPPFLAGS -E -P -include boost/version.hpp -x c++ - 2>/dev/null | tail -n 1 | tr _ . | tr -d '"'`
                XIO_FOUND([boost-context], [${xio_version:-yes}])])],
        [BOOST_CONTEXT_LIBS=])
  AC_SUBST([BOOST_CONTEXT_CFLAGS])
  AC_SUBST([BOOST_CONTEXT_LIBS])])
