#!/bin/bash
# SPDX-License-Identifier: MIT
# The tables of instructions that gfx90a and gfx1100 both have, on gfx1100 in waves of 64 lanes. opcodes_gfx1100.cpp tests
# those that it has alone, or does otherwise.
set -euo pipefail
# Of instructions that gfx1100 has not: buffers, AGPRs, the indexing mode, packed floats, cache instructions.
without='floats.pairs_and_halves:floats.every_half_and_what_rounds_to_one:integer.compare_into_exec:lanes_move.by_dpp'
without+=':lanes_move.permutes:lanes_move.accumulation_registers:lanes_move.indexed_registers:scalar.loads_and_the_clock'
without+=':scalar.faults_are_named:memory.global_loads_of_each_width:memory.float_atomics:memory.lds_atomics'
without+=':memory.global_stores_of_each_width:memory.private_memory:memory.linear_buffers_have_bounds:memory.cache_instructions_are_counted'
XIO_AMDGPU_TARGET=gfx1100 exec "$XIO_TEST_BUILDDIR/tests/amdgpu/opcodes" --gtest_brief=1 \
  --gtest_filter="floats*:integer*:lanes*:scalar*:memory*-$without"
