#!/bin/bash
# SPDX-License-Identifier: MIT
# The executor's tests in every way it can run.
set -eu
for wave in 64 32; do
  for exec in fibers threads; do
    for program in host_exec host_streams; do
      echo "== $program, $exec, waves of $wave"
      XIO_HOST_EXEC=$exec XIO_HOST_WAVE=$wave "$XIO_TEST_BUILDDIR/tests/unit/$program" --gtest_brief=1
    done
  done
done
