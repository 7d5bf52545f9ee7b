// SPDX-License-Identifier: MIT
// <hip/hip_runtime_api.h> for programs of HIP where there is no ROCm, by the flags of xio-rocshmem or xio-hip-names:
// the names of <xio/hip.h>. hipcc finds its own.
#pragma once

#if defined(__HIPCC__) || defined(__HIP__) || defined(XIO_PLATFORM_HIP)
#include_next <hip/hip_runtime_api.h>
#else
#include "xio/hip.h"
#endif
