# SPDX-License-Identifier: MIT
# Of libfabric the headers alone: the library is loaded when XIO_NIC_EXECUTOR=libfabric asks for it.
AC_DEFUN([XIO_CHECK_LIBFABRIC], [XIO_PACKAGE([LIBFABRIC], [libfabric], [libfabric], [rdma/fi_atomic.h], [return FI_MAJOR_VERSION;], [],
  [RDMA by libfabric, which is the way to Slingshot])])
