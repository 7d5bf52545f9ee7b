// SPDX-License-Identifier: MIT
// The few calls of the GPU's runtime that the tester makes itself. Answers are null, or what went wrong.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace xio::tester {

struct device_facts {
  std::string name, arch;
  std::size_t memory_bytes = 0;
  int compute_units = 0, wave_lanes = 0, threads_per_block = 0;
  std::size_t shared_bytes = 0;  // of a workgroup
};
const char* list_devices(std::vector<device_facts>& out);

// Of what was launched on the default stream.
bool kernels_are_done();
const char* finish_kernels();

const char* allocate_on(int device, std::size_t bytes, void** out);
const char* allocate_pinned(std::size_t bytes, void** out);
void free_device(void* block);
void free_pinned(void* block);
const char* select_device(int device);
// Between any two places.
const char* copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace xio::tester
