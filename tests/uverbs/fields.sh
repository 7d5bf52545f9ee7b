#!/bin/bash
# SPDX-License-Identifier: MIT
# The firmware's fields against the kernel's header, where a package of kernel headers is installed.
# shellcheck source=/dev/null
. "$XIO_TEST_BUILDDIR/tests/env.sh" || exit 1
: "${builddir:?}"
for header in "${XIO_TEST_UVERBS_IFC-}" /usr/src/linux-headers-*/include/linux/mlx5/mlx5_ifc.h; do
  if [ -e "$header" ]; then exec "$builddir/tests/uverbs/fields_test" "$header"; fi
done
skip 'no mlx5_ifc.h below /usr/src; install linux-headers-*-common'
