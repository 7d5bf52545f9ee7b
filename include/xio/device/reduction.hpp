// SPDX-License-Identifier: MIT
// The ops of reductions: xio_reduce, xio_reduce_scatter.
#pragma once

// The operation of a reduce. Sums and products of integers wrap.
enum class xio_reduction { sum, prod, min, max, bit_and, bit_or, bit_xor };
