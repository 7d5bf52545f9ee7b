# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_CLI11], [XIO_PACKAGE([CLI11], [cli11], [CLI11], [CLI/CLI.hpp], [CLI::App app;], [],
  [the tools (xiorun, xio-info) and the examples])])
