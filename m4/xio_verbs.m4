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
    [NVIDIA NICs driven by the GPU])
  dnl rdma-core 61
  XIO_PACKAGE([IONICDV], [ionicdv], [libionic], [infiniband/ionic_dv.h], [return ionic_dv_ctx_get_udma_count(nullptr);],
    [-lionic -libverbs], [AMD Pensando NICs driven by the GPU])
  dnl rdma-core of 2026
  XIO_PACKAGE([BNXTREDV], [bnxt_re_dv], [libbnxt_re], [infiniband/bnxt_re_dv.h],
    [bnxt_re_dv_db_region_attr a; return bnxt_re_dv_get_default_db_region(nullptr, &a);], [-lbnxt_re -libverbs],
    [Broadcom NICs driven by the GPU])])
