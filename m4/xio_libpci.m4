# SPDX-License-Identifier: MIT
# As C: its header has no extern "C".
AC_DEFUN([XIO_CHECK_LIBPCI], [
  AC_LANG_PUSH([C])
  XIO_PACKAGE([LIBPCI], [libpci], [libpci], [pci/pci.h], [pci_cleanup(pci_alloc());], [-lpci], [the check of PCIe AtomicOps])
  AC_LANG_POP([C])])
