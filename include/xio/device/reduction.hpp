// SPDX-License-Identifier: MIT
// The ops of reductions.
#pragma once

// How xio_reduce_* and xio_reduce_scatter_* combine the members' elements. Sums and products of integers wrap;
// bit_and, bit_or and bit_xor are for integers.
enum class xio_reduction { sum, prod, min, max, bit_and, bit_or, bit_xor };
