# SPDX-License-Identifier: MIT
# XIO_PRECOMPILED: g++ or clang reads the headers that most files of src/ include once, and not for each file. A compiler cache does
# not keep files that are compiled so, so where one is asked first it has the say.
AC_DEFUN([XIO_PRECOMPILED], [
  AC_ARG_ENABLE([precompiled-headers],
    [AS_HELP_STRING([--disable-precompiled-headers], [read all headers for every file (default where a compiler cache is, or neither g++ nor clang)])],
    [], [enable_precompiled_headers=auto])
  AS_IF([test "$enable_precompiled_headers" = auto], [
    enable_precompiled_headers=yes
    set dummy $CXX
    xio_cxx=`command -v "$[2]"`
    AS_CASE(["$CXX `readlink -f "$xio_cxx"`"], [*ccache*|*distcc*], [enable_precompiled_headers=no])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#ifndef __GNUC__
                                         #error neither g++ nor clang
                                         #endif]])], [], [enable_precompiled_headers=no])
  ])
  AS_VAR_APPEND([xio_summary], ["
  precompiled headers: $enable_precompiled_headers"])
  AM_CONDITIONAL([PRECOMPILED_HEADERS], [test "$enable_precompiled_headers" = yes])
])
