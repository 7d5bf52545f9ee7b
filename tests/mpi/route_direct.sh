#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, every op by route direct.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}"
# shellcheck disable=SC2086  # a list
suite mpirun 2 direct $all
# shellcheck disable=SC2086
suite mpirun 4 direct $all
# Of a program that promises its compiler that no float is a NaN.
if on_host_platform; then suite any 3 direct extremes_fast; fi
end
