# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_GTEST], [XIO_PACKAGE([GTEST], [gtest], [gtest], [gtest/gtest.h], [return RUN_ALL_TESTS();],
  [-lgtest -lpthread], [most of make check])
  AS_IF([test "x$have_GTEST" = xyes], [GTEST_MAIN_LIBS="-lgtest_main $GTEST_LIBS"], [GTEST_MAIN_LIBS=])
  AC_SUBST([GTEST_MAIN_LIBS])])
