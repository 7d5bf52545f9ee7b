/* SPDX-License-Identifier: MIT */
/* The host API is plain C: this is compiled by a C compiler, pedantically, against an installed XIO. */
#include <stdio.h>
#include <string.h>
#include <xio/host.h>
#include <xio/xio.h>

int main(void) {
  int major = -1, minor = -1, patch = -1;
  xio_version(&major, &minor, &patch);
  printf("xio %d.%d.%d\n", major, minor, patch);
  if (major * 10000 + minor * 100 + patch != XIO_VERSION) return 1;
  if (strcmp(xio_status_name(XIO_ERR_TIMEOUT), "XIO_ERR_TIMEOUT") != 0) return 1;
  if (xio_abi_version() != XIO_ABI_VERSION) return 1;
  if (xio_size_of("xio_ctx_t") != sizeof(xio_ctx_t) || xio_size_of("int") != 0 || xio_size_of(NULL) != 0) return 1;
  xio_ctx_t ctx;
  xio_stream_attr_t attr = XIO_STREAM_ATTR_INIT;
  memset(&ctx, 0, sizeof ctx);
  if (xio_quiet_on_stream(NULL, ctx, NULL, &attr) != XIO_ERR_ARG) return 1;
  if (xio_finalize(NULL) == XIO_OK) return 1;
  return strlen(xio_last_error()) > 0 ? 0 : 1;
}
