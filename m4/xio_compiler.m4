# SPDX-License-Identifier: MIT
# The C++ compiler: C++20, sanitizers.
AC_DEFUN([XIO_CXX20], [
  AC_MSG_CHECKING([whether $CXX knows C++20])
  xio_save_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -std=c++20"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <concepts>
#include <span>
template <std::integral T> T twice(T v) { return 2 * v; }]], [[std::span<int> s; return twice(static_cast<int>(s.size()));]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     XIO_MISSING([g++], [a C++ compiler that knows C++20, which $CXX does not: g++ 12 and clang 14 and later do, set CXX])])
  CXXFLAGS=$xio_save_CXXFLAGS])

# XIO_SANITIZER: --enable-sanitizer=address|undefined|thread, also a comma list such as address,undefined.
AC_DEFUN([XIO_SANITIZER], [
  AC_ARG_ENABLE([sanitizer],
    [AS_HELP_STRING([--enable-sanitizer=KIND], [address, undefined or thread: build everything with that sanitizer])],
    [], [enable_sanitizer=no])
  XIO_SANITIZER_FLAGS=
  # What the library lacks is an error when it is linked, but for the sanitizers' own names.
  XIO_DEFS_FLAGS=-Wl,-z,defs
  # Lines of source are five sixths of a tool that libxio is linked into. Sanitizers' reports want them.
  XIO_TOOL_LDFLAGS=-Wl,--strip-debug
  AS_CASE([$enable_sanitizer],
    [no], [],
    [address|undefined|thread|address,undefined|undefined,address],
      [XIO_SANITIZER_FLAGS="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer"
       XIO_DEFS_FLAGS=
       XIO_TOOL_LDFLAGS=
       # g++ turns copies of a few dozen bytes, such as ring entries, into moves that ThreadSanitizer never hears of.
       AS_CASE([$enable_sanitizer], [thread], [
         for xio_function in memcpy memmove memset memcmp; do
           XIO_SANITIZER_FLAGS="$XIO_SANITIZER_FLAGS -fno-builtin-$xio_function"
         done])
       xio_save_CXXFLAGS=$CXXFLAGS
       CXXFLAGS="$CXXFLAGS $XIO_SANITIZER_FLAGS"
       AC_LINK_IFELSE([AC_LANG_PROGRAM], [],
         [AC_MSG_ERROR([$CXX cannot link with $XIO_SANITIZER_FLAGS; install its sanitizer runtime])])
       CXXFLAGS=$xio_save_CXXFLAGS],
    [AC_MSG_ERROR([--enable-sanitizer=$enable_sanitizer is not known; use address, undefined or thread])])
  AC_SUBST([XIO_SANITIZER_FLAGS])
  AC_SUBST([XIO_DEFS_FLAGS])
  AC_SUBST([XIO_TOOL_LDFLAGS])
  AC_SUBST([enable_sanitizer])
  XIO_FOUND([sanitizer], [$enable_sanitizer])])
