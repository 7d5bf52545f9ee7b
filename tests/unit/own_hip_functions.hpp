// SPDX-License-Identifier: MIT
#pragma once

const void* own_hip_malloc_of_c();
const void* own_hip_malloc_of_cxx();
int own_hip_calls();           // how often either was called
int own_hip_call(void** out);  // calls hipMalloc as a program in C does; both return 77
