// SPDX-License-Identifier: MIT
// In a guest whose own driver has the drive: what opening it says.
#include <cstdio>

#include "xio/xio.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  xio_world_t* world = nullptr;
  xio_storage_t storage{};
  const xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  if (xio_init(nullptr, &world) != XIO_OK) {
    std::printf("%s\n", xio_last_error());
    return 1;
  }
  const xio_status_t status = xio_storage_open(world, argv[1], &attr, &storage);
  std::printf("%s: %s\n", xio_status_name(status), xio_last_error());
  return xio_finalize(world) == XIO_OK && status == XIO_ERR_UNSUPPORTED ? 0 : 1;
}
