#!/bin/bash
# SPDX-License-Identifier: MIT
# Posting to queues of all families that write their own entries, with GPU threads as fibers (whole waves post together)
# and as threads of the system.
set -eu
# shellcheck source=tests/env.sh.in
. "$XIO_TEST_BUILDDIR/tests/env.sh"
for exec in fibers threads; do
  echo "== $exec"
  # shellcheck disable=SC2154
  XIO_HOST_EXEC=$exec "$builddir/tests/model/nic_dialect_lane" --gtest_brief=1
done
