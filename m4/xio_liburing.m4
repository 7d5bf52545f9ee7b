# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_LIBURING], [XIO_PACKAGE([URING], [liburing], [liburing], [liburing.h],
  [io_uring ring; return io_uring_queue_init(2, &ring, 0);], [-luring],
  [asynchronous file access of the NVMe model; it reads and writes with plain calls])])
