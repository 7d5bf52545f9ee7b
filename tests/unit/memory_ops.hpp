// SPDX-License-Identifier: MIT
// Kernels for the test of memory, in a file of their own: the kernels' compiler does not see GoogleTest.
#pragma once
#include <cstddef>

#include "xio/xio.h"

namespace xio::test {

constexpr std::size_t k_part = 4096;  // bytes of every op

// One thread does four steps and stores the status of each in memory that host and device see. False: the kernel
// failed.
bool put_and_get(xio_ctx_t ctx, unsigned char* symmetric, unsigned char* from, unsigned char* to,
                 xio_status_t* statuses);
bool write_and_read(xio_ctx_t ctx, xio_storage_t storage, unsigned char* from, unsigned char* to,
                    xio_status_t* statuses);

}  // namespace xio::test
