#!/bin/bash
# SPDX-License-Identifier: MIT
# The device API between PEs, every op by route sdma.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
: "${all:?}"
# shellcheck disable=SC2086  # a list
suite mpirun 2 sdma $all
# shellcheck disable=SC2086
suite mpirun 4 sdma $all
end
