// SPDX-License-Identifier: MIT
// The few calls of the GPU's runtime that the tester makes itself. They return null, or a text that says what went
// wrong.
#pragma once
#include <cstddef>

namespace xio::tester {

// Both are about the kernels that were launched on the default stream.
bool kernels_are_done();
const char* finish_kernels();
const char* launched();

const char* allocate_on(int device, std::size_t bytes, void** out);
const char* allocate_pinned(std::size_t bytes, void** out);
void free_device(void* block);
void free_pinned(void* block);
const char* select_device(int device);
// Between any two places.
const char* copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace xio::tester
