/* SPDX-License-Identifier: MIT */
/* Memory by kind, where it lives, and dma-bufs of it. Plain C; needs no world. Every call is local, and may be made by
 * several threads at once. Status, errors and units are as in xio.h. docs/memory.md says what each kind is on each
 * platform. */
#ifndef XIO_MEMORY_H
#define XIO_MEMORY_H

#include "xio/xio.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of memory of a block. A platform that has no such memory refuses the kind (XIO_ERR_UNSUPPORTED); another
 * kind is never taken in its place. */
typedef enum xio_mem_kind XIO_ENUM_OF_INT {
  XIO_MEM_NONE = 0,                   /* in results: not of xio_mem_alloc */
  XIO_MEM_HOST_MAPPED = 1,            /* pinned, and the GPU has it mapped */
  XIO_MEM_HOST_COHERENT = 2,          /* mapped, and neither side caches what the other writes */
  XIO_MEM_HOST_PINNED = 3,            /* ordinary pages, locked and registered with the GPU afterwards */
  XIO_MEM_HOST_PLAIN = 4,             /* ordinary pages; the GPU does not know them */
  XIO_MEM_HOST_DEFAULT = 5,           /* what the platform's host allocation gives without a flag */
  XIO_MEM_DEVICE_FINE_GRAINED = 16,   /* peers, engines and NICs see stores while kernels run */
  XIO_MEM_DEVICE_COARSE_GRAINED = 17, /* others may see stores only when the kernel has ended */
  XIO_MEM_DEVICE_UNCACHED = 18,       /* no GPU cache keeps it: for flags and completions that devices write */
  XIO_MEM_DEVICE_VMEM = 19,           /* addresses reserved, memory created, mapped and made accessible; exportable */
  XIO_MEM_DEVICE_HIP = 20             /* plain hipMalloc or cudaMalloc */
} xio_mem_kind_t;

/* How a block is made. Set `size` to sizeof the struct (or use the _INIT macro); 0 in a member: the default. */
typedef struct xio_mem_attr {
  size_t size;
  size_t alignment; /* of the block's start, a power of two, at most 1 GiB; less than a page of the system: a page */
} xio_mem_attr_t;
#define XIO_MEM_ATTR_INIT \
  { sizeof(xio_mem_attr_t), 0 }

/* The kind's name, such as "HOST_MAPPED"; "NONE" for 0 and for a number that is no kind. Never null. */
XIO_EXPORT const char* xio_mem_kind_name(xio_mem_kind_t kind);
/* XIO_OK if this platform has memory of that kind; else xio_last_error() says why not. */
XIO_EXPORT xio_status_t xio_mem_supports(xio_mem_kind_t kind);

/* Allocates a block of at least `bytes` (more than 0), which reads as zeroes and shares no page with another block.
 * Device kinds are of the GPU that xio_init chose, or GPU 0 before. attr may be null.
 *
 * Returns XIO_ERR_NO_MEMORY when there is not as much, XIO_ERR_UNSUPPORTED for a kind that the platform lacks,
 * XIO_ERR_ARG for a number that is no kind, 0 bytes or a wrong alignment. */
XIO_EXPORT xio_status_t xio_mem_alloc(xio_mem_kind_t kind, size_t bytes, const xio_mem_attr_t* attr, void** out);
/* Frees a block: the engines of every world forget it first, so that a kernel's op that names it afterwards returns
 * XIO_ERR_NOT_REGISTERED. No op on it may be under way; with a GPU it may wait for kernels
 * that run. Null is allowed. XIO_ERR_STATE if it was freed already or is none of xio_mem_alloc, XIO_ERR_ARG if it is
 * not a block's start; nothing is freed then. */
XIO_EXPORT xio_status_t xio_mem_free(void* block);

/* The same bytes twice, in memory of the host and of the device. Filled in by xio_mem_pair_alloc; do not change it. */
typedef struct xio_mem_pair {
  void* host;
  void* device;
  size_t bytes;
} xio_mem_pair_t;

/* Allocates `bytes` twice, one block of each kind: both or neither. Errors are those of xio_mem_alloc. */
XIO_EXPORT xio_status_t xio_mem_pair_alloc(xio_mem_kind_t host, xio_mem_kind_t device, size_t bytes,
                                           const xio_mem_attr_t* attr, xio_mem_pair_t* out);
/* Copies [offset, offset + bytes) of the host's side to the device's, and waits for it. XIO_ERR_ARG if that leaves the
 * pair. */
XIO_EXPORT xio_status_t xio_mem_pair_to_device(const xio_mem_pair_t* pair, size_t offset, size_t bytes);
/* Copies [offset, offset + bytes) of the device's side to the host's, and waits for it. Errors as above. */
XIO_EXPORT xio_status_t xio_mem_pair_to_host(const xio_mem_pair_t* pair, size_t offset, size_t bytes);
/* Frees both sides and empties *pair. An empty pair is allowed. */
XIO_EXPORT xio_status_t xio_mem_pair_free(xio_mem_pair_t* pair);

/* Which side of the machine memory is on. */
typedef enum xio_mem_side {
  XIO_MEM_ON_UNKNOWN = 0, /* nothing is mapped there */
  XIO_MEM_ON_HOST = 1,
  XIO_MEM_ON_DEVICE = 2,
  XIO_MEM_ON_BOTH = 3 /* managed: pages move between host and device */
} xio_mem_side_t;

/* Where one address lives, as the GPU's runtime and the kernel report it at the time of the call. -1 in an int: not
 * known, or there is none. */
typedef struct xio_mem_place {
  size_t size;
  xio_mem_side_t side;
  xio_mem_kind_t kind; /* as it was asked of xio_mem_alloc, or XIO_MEM_NONE */
  void* base;          /* of the block, else of the runtime's allocation, else of the kernel's mapping around it */
  size_t bytes;
  size_t page_bytes;       /* of the kernel's mapping; 0 for memory of a device */
  int device;              /* number of the GPU */
  int numa_node;           /* of the page at the address */
  int resident;            /* 1: the page at the address is in memory, 0: it is not, or no longer */
  int locked;              /* 1: the kernel or the GPU's driver keeps the whole block in memory */
  int placed_as_requested; /* 1: it lives where its kind says, 0: elsewhere, see `reason`; -1: not of xio_mem_alloc */
  char bus_id[16];         /* of the GPU, "0000:3b:00.0", or "" */
  char reason[160];        /* why it is not placed as requested, or "" */
} xio_mem_place_t;
#define XIO_MEM_PLACE_INIT \
  { sizeof(xio_mem_place_t), XIO_MEM_ON_UNKNOWN, XIO_MEM_NONE, NULL, 0, 0, -1, -1, -1, -1, -1, "", "" }

/* Fills in what is known of an address, and touches nothing there. Set out->size. XIO_OK also for addresses where
 * nothing is. */
XIO_EXPORT xio_status_t xio_mem_where(const void* address, xio_mem_place_t* out);

/* Flags of xio_mem_export_dmabuf. */
enum {
  XIO_DMABUF_PCIE = 1 /* importers reach it through the PCIe BAR, not by a private link */
};
/* Exports the memory that [address, address + bytes) lies in, which must be inside one allocation, as a dma-buf: *fd is
 * a file descriptor, to be closed by xio_mem_close_dmabuf, and *offset the place of address in it. The memory outlives
 * xio_mem_free while importers hold it. XIO_ERR_UNSUPPORTED when memory of that kind, or this driver, has none. */
XIO_EXPORT xio_status_t xio_mem_export_dmabuf(void* address, size_t bytes, unsigned flags, int* fd, uint64_t* offset);
/* Closes a descriptor of xio_mem_export_dmabuf. XIO_ERR_ARG for another one. */
XIO_EXPORT xio_status_t xio_mem_close_dmabuf(int fd);

/* How often xio_mem_register found a registration that the engines had kept; see XIO_REGISTRATIONS. `size` as in
 * xio_engine_stats_t. */
typedef struct xio_mem_cache {
  size_t size;
  uint64_t hits;      /* no engine was asked */
  uint64_t misses;    /* engines registered memory */
  uint64_t evictions; /* forgotten to make room */
  uint64_t forgotten; /* forgotten because the block was freed */
  uint64_t kept;      /* engines still have them, and the program has not registered them */
} xio_mem_cache_stats_t;
#define XIO_MEM_CACHE_STATS_INIT \
  { sizeof(xio_mem_cache_stats_t), 0, 0, 0, 0, 0 }

/* The counts of a world since xio_init. */
XIO_EXPORT xio_status_t xio_mem_cache_stats(const xio_world_t* world, xio_mem_cache_stats_t* out);

#ifdef __cplusplus
}
#endif
#endif
