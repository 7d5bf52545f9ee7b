/* SPDX-License-Identifier: MIT */
/* Calls of the CUDA runtime that return what they would on a lesser machine; cuda_refusals.sh preloads them. Without
 * their variable they are the real ones. Numbers: cudaError_t and the versions of driver_types.h and
 * cuda_runtime_api.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

enum { insufficient_driver = 35, no_device = 100 };

static const char* asked(const char* variable) { return getenv(variable); }

int cudaGetDeviceCount(int* count) {
  if (asked("XIO_TEST_FAKE_DRIVER") != NULL) return insufficient_driver;
  if (asked("XIO_TEST_FAKE_NO_GPU") != NULL) return no_device;
  int (*real)(int*) = (int (*)(int*))dlsym(RTLD_NEXT, "cudaGetDeviceCount");
  return real(count);
}

int cudaDriverGetVersion(int* version) {
  const char* text = asked("XIO_TEST_FAKE_DRIVER");
  if (text != NULL) {
    *version = atoi(text);
    return 0;
  }
  int (*real)(int*) = (int (*)(int*))dlsym(RTLD_NEXT, "cudaDriverGetVersion");
  return real(version);
}

int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (asked("XIO_TEST_FAKE_NO_PEERS") != NULL) {
    *can = 0;
    return 0;
  }
  int (*real)(int*, int, int) = (int (*)(int*, int, int))dlsym(RTLD_NEXT, "cudaDeviceCanAccessPeer");
  return real(can, device, peer);
}
