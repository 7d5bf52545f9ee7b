# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_BENCHMARK], [XIO_PACKAGE([BENCHMARK], [benchmark], [benchmark], [benchmark/benchmark.h],
  [benchmark::RunSpecifiedBenchmarks();], [-lbenchmark -lpthread], [microbenchmarks in bench/])])
