# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_UCX], [XIO_PACKAGE([UCX], [ucx], [ucx], [ucp/api/ucp.h],
  [unsigned a, b, c; ucp_get_version(&a, &b, &c);], [-lucp -lucs], [the UCX bootstrap])])
