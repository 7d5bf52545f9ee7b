#!/bin/bash
# SPDX-License-Identifier: MIT
# The ring under stress, with GPU threads as fibers (whole waves post together) and as threads of the system.
set -eu
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
modes=fibers
if [ "$gpu" = host ]; then modes='fibers threads'; fi
for exec in $modes; do
  echo "== $exec"
  XIO_HOST_EXEC=$exec "$builddir/tests/unit/ring_stress" --gtest_brief=1
done
