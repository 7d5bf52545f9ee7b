// SPDX-License-Identifier: MIT
#include "tools/xio-tester/device.hpp"
#include "xio/hip.h"

namespace xio::tester {
namespace {

const char* error_text(hipError_t e) { return e == hipSuccess ? nullptr : hipGetErrorString(e); }

}  // namespace

bool kernels_are_done() { return hipStreamQuery(nullptr) != hipErrorNotReady; }

const char* finish_kernels() { return error_text(hipDeviceSynchronize()); }

const char* launched() { return error_text(hipGetLastError()); }

const char* allocate_on(int device, std::size_t bytes, void** out) {
  int before = 0;
  if (const char* wrong = error_text(hipGetDevice(&before))) return wrong;
  if (const char* wrong = error_text(hipSetDevice(device))) return wrong;
  const char* wrong = error_text(hipMalloc(out, bytes));
  const char* back = error_text(hipSetDevice(before));
  return wrong != nullptr ? wrong : back;
}

const char* allocate_pinned(std::size_t bytes, void** out) {
  return error_text(hipHostMalloc(out, bytes, hipHostMallocMapped | hipHostMallocPortable));
}

void free_device(void* block) { static_cast<void>(hipFree(block)); }
void free_pinned(void* block) { static_cast<void>(hipHostFree(block)); }
const char* select_device(int device) { return error_text(hipSetDevice(device)); }

const char* copy_bytes(void* to, const void* from, std::size_t bytes) {
  return error_text(hipMemcpy(to, from, bytes, hipMemcpyDefault));
}

}  // namespace xio::tester
