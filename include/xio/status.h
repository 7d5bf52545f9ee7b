/* SPDX-License-Identifier: MIT */
/* The one status of XIO: host calls, device calls and queues all return it. */
#ifndef XIO_STATUS_H
#define XIO_STATUS_H

#include "xio/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum xio_status {
  XIO_OK = 0,
  XIO_PENDING = 1,             /* tests: not finished yet; not an error */
  XIO_ERR_ARG = -1,            /* an argument is wrong: null, out of range, misaligned */
  XIO_ERR_PE = -2,             /* PE outside 0..n_pes-1 */
  XIO_ERR_NOT_SYMMETRIC = -3,  /* the address is not inside the symmetric heap */
  XIO_ERR_NOT_REGISTERED = -4, /* a local buffer that an engine must reach is not registered */
  XIO_ERR_NO_MEMORY = -5,      /* heap or host memory exhausted */
  XIO_ERR_CONFIG = -6,         /* environment or attribute value not understood */
  XIO_ERR_UNSUPPORTED = -7,    /* this build or this machine cannot do it */
  XIO_ERR_NO_ROUTE = -8,       /* no engine reaches that PE */
  XIO_ERR_TIMEOUT = -9,        /* XIO_TIMEOUT_MS went by */
  XIO_ERR_PEER = -10,          /* a peer died, refused or sent nonsense */
  XIO_ERR_AUTH = -11,          /* a peer could not prove the shared key */
  XIO_ERR_TRANSPORT = -12,     /* an engine completed an op with an error; xio_ctx_error says which */
  XIO_ERR_STORAGE = -13,       /* a drive reported an error, or its report of the op is no longer known */
  XIO_ERR_IO = -14,            /* the operating system refused: file, socket, mapping */
  XIO_ERR_STATE = -15,         /* used before init, after destroy, or twice */
  XIO_ERR_INTERNAL = -16       /* a bug of XIO */
} xio_status_t;

/* Local, any thread. The name of a status, such as "XIO_ERR_TIMEOUT", a constant; never null. */
XIO_EXPORT const char* xio_status_name(xio_status_t status);

#ifdef __cplusplus
}
#endif
#endif
