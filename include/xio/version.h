/* SPDX-License-Identifier: MIT */
/* The version of these headers. configure reads it here; xio_version() has that of the library that is loaded. */
#ifndef XIO_VERSION_H
#define XIO_VERSION_H

#define XIO_VERSION_MAJOR 0
#define XIO_VERSION_MINOR 1
#define XIO_VERSION_PATCH 0

/* As one number, for comparisons: 10203 is 1.2.3. */
#define XIO_VERSION (XIO_VERSION_MAJOR * 10000 + XIO_VERSION_MINOR * 100 + XIO_VERSION_PATCH)

/* The binary interface of libxio: calls, structs and enums. It changes at most with the minor version before 1.0, and
 * with the major one from then on; see xio_abi_version. */
#define XIO_ABI_VERSION (XIO_VERSION_MAJOR == 0 ? XIO_VERSION_MINOR : XIO_VERSION_MAJOR * 100)

#endif
