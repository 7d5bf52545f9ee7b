# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_VERBS], [
  XIO_PACKAGE([VERBS], [verbs], [libibverbs], [infiniband/verbs.h], [int n; ibv_get_device_list(&n);], [-libverbs],
    [RDMA hardware])
  AS_IF([test "x$have_VERBS" = xyes], [
    xio_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $VERBS_CFLAGS"
    dnl rdma-core 34
    AC_CHECK_DECL([ibv_reg_dmabuf_mr],
      [AC_DEFINE([HAVE_IBV_REG_DMABUF_MR], [1], [Define to 1 if verbs registers dma-bufs.])
       XIO_FOUND([dma-buf in verbs], [yes])],
      [XIO_LOST([dma-buf in verbs], [RDMA on GPU memory without a peer-memory module])], [[#include <infiniband/verbs.h>]])
    CPPFLAGS=$xio_save_CPPFLAGS])
  XIO_PACKAGE([MLX5DV], [mlx5dv], [libmlx5], [infiniband/mlx5dv.h], [return mlx5dv_is_supported(nullptr);], [-lmlx5 -libverbs],
    [NVIDIA NICs driven by the GPU])])
