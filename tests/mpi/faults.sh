#!/bin/bash
# SPDX-License-Identifier: MIT
# Collectives in which something is wrong (faults.hip), on three routes: some cases among 3 PEs; with `all` the whole
# table among 2, 3, 5 and 9, and members that do not come. Each of these runs is 1 to 10 minutes long.
# shellcheck source=tests/mpi/run.sh
. "${0%/*}/run.sh" || exit 1
for route in direct rdma sdma; do
  if [ "${1-}" != all ]; then
    suite any 3 "$route" faults
    continue
  fi
  # shellcheck disable=SC2034  # run.sh has it
  limit=1800
  for n in 2 3 5 9; do suite any "$n" "$route" 'faults all'; done
  for n in 2 9; do suite any "$n" "$route" 'faults absent'; done
done
end
