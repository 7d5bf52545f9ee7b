// SPDX-License-Identifier: MIT
// The ops of reductions.
#pragma once

// How xio_reduce_* and xio_reduce_scatter_* combine the members' elements. Sums and products of integers wrap;
// bit_and, bit_or and bit_xor are for integers. min and max are minimum and maximum of IEEE 754-2019: a NaN of any
// member is the result, -0 is below +0; for every type of floats, size and route, and in programs that are compiled
// with -ffast-math, too. A NaN comes out with the bits that it had, a signalling one as well; where several members
// have one, all get the same of them.
enum class xio_reduction { sum, prod, min, max, bit_and, bit_or, bit_xor };
