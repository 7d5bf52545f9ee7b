# SPDX-License-Identifier: MIT
# The HSA runtime has no pkg-config file; ROCm keeps it in its own tree.
AC_DEFUN([XIO_CHECK_HSA], [XIO_PACKAGE([HSA], [hsa], [], [hsa/hsa.h], [return hsa_init();],
  [-lhsa-runtime64], [memory agents and signals of AMD GPUs])])
