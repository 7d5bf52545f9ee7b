/* SPDX-License-Identifier: MIT */
/* What <xio/xio_device.hpp> tells libxio about the kernels of a file, and what XIO's tools ask it. Programs call
 * nothing of this. */
#ifndef XIO_INTERNAL_H
#define XIO_INTERNAL_H

#include <stdint.h>

#include "xio/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The engines that kernels can have; see XIO_ENGINES in xio/device/impl/selection.hpp. */
enum {
  XIO_HAS_DIRECT = 1, /* loads and stores to other PEs */
  XIO_HAS_RDMA = 2,
  XIO_HAS_SDMA = 4,
  XIO_HAS_NVME = 8, /* storage */
  XIO_HAS_HDP = 16  /* flushes of the host data path */
};

/* Local, any thread. Called before main() where a file was compiled with fewer engines or NIC families than there are
 * (XIO_ENGINES, XIO_FAMILIES). engines: bits of XIO_HAS_*; families: bit i is ring_kind i. An engine that one file left
 * out counts as left out of the program: from then on xio_init, xio_ctx_create and xio_storage_open refuse worlds,
 * contexts and storages that need it, with XIO_ERR_STATE. */
XIO_EXPORT void xio_internal_program_has(uint32_t engines, uint32_t families);
/* Local, any thread. Called before main(), or when a shared object is loaded, with the number of the layout of
 * xio_ctx_t that a file with kernels was compiled with (xio/device/impl/layout.hpp). From a number on that is not the
 * library's own, xio_init and xio_ctx_create return XIO_ERR_STATE: such kernels would read the context wrong. */
XIO_EXPORT void xio_internal_program_layout(uint32_t layout);

/* Local, any thread. Calls each(arg, engine, backend) for every engine that this process has opened, in that order:
 * "rdma", "sdma", "storage file:x" and "mlx5 over shm (model)". The texts live as long as the call of each. */
XIO_EXPORT void xio_internal_backends(void (*each)(void* arg, const char* engine, const char* backend), void* arg);

#ifdef __cplusplus
}
#endif
#endif
