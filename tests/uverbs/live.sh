#!/bin/bash
# SPDX-License-Identifier: MIT
# tests/uverbs/live_test on each kind of simulated device.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}"
on_host_platform || skip 'the simulated device reaches host memory alone'
[ "$(uname -m)" = x86_64 ] || skip 'the simulated doorbell pages decode stores of x86-64'
export XIO_BACKEND=hw XIO_ROUTE=rdma XIO_LOG_LEVEL=warn
status=0
for nic in mlx5 bnxt ionic; do
  [ $nic != mlx5 ] || has HAVE_MLX5DV || continue
  XIO_TEST_UVERBS_NIC=$nic XIO_NIC_FAMILY=$nic "${0%/*}/run" timeout -k 5 120 "$builddir/tests/uverbs/live_test" || status=1
done
# Rings that are dma-bufs, and pages of doorbells, by the vendors' libraries.
for nic in bnxt ionic; do
  XIO_TEST_UVERBS_VENDOR=1 XIO_TEST_UVERBS_NIC=$nic XIO_NIC_FAMILY=$nic "${0%/*}/run" timeout -k 5 120 \
    "$builddir/tests/uverbs/live_test" --gtest_filter='dmabuf.*:doorbell.*' || status=1
done
exit $status
