# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_VERBS], [
  XIO_PACKAGE([VERBS], [verbs], [libibverbs], [infiniband/verbs.h], [int n; ibv_get_device_list(&n);], [-libverbs],
    [RDMA hardware])
  XIO_PACKAGE([MLX5DV], [mlx5dv], [libmlx5], [infiniband/mlx5dv.h], [return mlx5dv_is_supported(nullptr);], [-lmlx5 -libverbs],
    [NVIDIA NICs driven by the GPU])])
