/* SPDX-License-Identifier: MIT */
/*
 * The interface between programs and the kernel module xio: the ioctls of /dev/xio. Everything that an open gets is its
 * own, and is given back when the last descriptor of that open and the last mapping made with it are gone.
 *
 * Reserved members and unknown flags must be zero (EINVAL). Errors that several calls share:
 *
 * - ENODEV: there is no such PCI device, no driver is bound to it, or it has gone since the handle was made
 * - EBUSY: its IOMMU belongs to somebody else (vfio), or the object is in use by a queue pair
 * - EPERM: without an IOMMU that translates, bus addresses are physical ones: CAP_SYS_RAWIO is needed; for a queue pair
 *   always. Also where the kernel is locked down
 * - EOPNOTSUPP: DMA of this device may go through a copy (swiotlb); queues and pinned buffers cannot
 * - ENOENT: this open has no such handle, or it names another kind of object
 * - ENOMEM: with it this user would hold more than RLIMIT_MEMLOCK; or the machine has no more
 * - EINTR: a signal came while it waited
 * - ENOSPC: this open holds as many objects, or as much memory, as it may (struct xio_kmod_info)
 */
#ifndef XIO_UAPI_H
#define XIO_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define XIO_KMOD_VERSION 1 /* grows when something here changes its meaning; new calls do not change it */

/* struct xio_kmod_info, features */
#define XIO_KMOD_HAS_PIN 0x1u
#define XIO_KMOD_HAS_MEMORY 0x2u
#define XIO_KMOD_HAS_QUEUE_PAIR 0x4u
#define XIO_KMOD_HAS_PINNED_QUEUES 0x8u /* queue pairs in pinned buffers; without it their offsets must be 0 */

struct xio_kmod_info {
  __u32 version;
  __u32 features;
  __u32 max_objects;  /* of an open */
  __u32 max_segments; /* of a pinned buffer */
  __u64 max_memory;   /* octets of queue memory of an open */
  __u64 max_block;    /* octets of one piece of queue memory */
  __u64 reserved[2];  /* in: 0 */
};

/* A PCI function: domain:bus:slot.function. */
struct xio_kmod_pci {
  __u32 domain;
  __u8 bus;
  __u8 slot;
  __u8 function;
  __u8 reserved;
};

/* struct xio_kmod_pin, flags */
#define XIO_KMOD_PIN_DEVICE 0x1u /* EREMOTEIO where the exporter gives (or moves it to) system memory */
/* struct xio_kmod_pin, state */
#define XIO_KMOD_PINNED_DEVICE 0x1u     /* no segment lies in system memory */
#define XIO_KMOD_PINNED_TRANSLATED 0x2u /* the addresses go through an IOMMU */

/*
 * Pins a dma-buf where it is and makes it reachable for a device, which may read and write it. It does not move until
 * the handle is released: the exporter has been asked for that (dma_buf_pin), not only to tell of moves.
 */
struct xio_kmod_pin {
  struct xio_kmod_pci device;
  __s32 dmabuf;
  __u32 flags;
  __u32 handle;   /* out */
  __u32 segments; /* out: how many XIO_KMOD_SEGMENTS can tell */
  __u32 state;    /* out */
  __u32 reserved0;
  __u64 bytes; /* out */
  __u64 reserved[2];
};

struct xio_kmod_segment {
  __u64 address; /* on the bus, as the device must say it */
  __u64 bytes;
};

/* ESTALE: the exporter has moved the buffer against its word. The addresses are not to be used any more. */
struct xio_kmod_segments {
  __u32 handle;
  __u32 first;
  __u32 count; /* in: room in the array; out: how many were written, less only at the end */
  __u32 reserved0;
  __u64 array; /* of struct xio_kmod_segment */
  __u64 reserved;
};

/*
 * Zeroed memory that processor and device see alike, contiguous on the bus, for queues and lists. mmap it, shared, at
 * `offset`. Whole pages; at most max_block.
 */
struct xio_kmod_memory {
  struct xio_kmod_pci device;
  __u64 bytes;
  __u32 handle;  /* out */
  __u32 state;   /* out: XIO_KMOD_PINNED_TRANSLATED */
  __u64 address; /* out: on the bus */
  __u64 offset;  /* out: for mmap */
  __u64 reserved[2];
};

/* Gives any object back. EBUSY: a queue pair lies in this memory. */
struct xio_kmod_release {
  __u32 handle;
  __u32 reserved;
};

/*
 * An I/O queue pair of an NVMe controller that the administrator has given to this module (driver_override "xio"). Each
 * queue lies at the beginning of a piece of queue memory of the same device, or in a buffer that is pinned for it, such
 * as memory of a GPU: there at an offset in whole pages, and in one piece on the bus (EINVAL where it is not). EBUSY:
 * another queue lies there; such a buffer is not released before the pair. Releasing the handle deletes the
 * queues, which ends their commands. EOPNOTSUPP: another driver has the controller. Linux' nvme driver has no way to
 * give up a queue; vfio takes a whole controller. ENOSPC: the controller has no queue left. EIO: it does not complete
 * commands, or refused one.
 */
struct xio_kmod_queue_pair {
  struct xio_kmod_pci device;
  __u32 sq_memory; /* handles */
  __u32 cq_memory;
  __u32 sq_entries; /* 2 .. CAP.MQES + 1 */
  __u32 cq_entries;
  __u32 handle;      /* out */
  __u32 queue;       /* out: identifier of both */
  __u64 offset;      /* out: for mmap of the one page with the doorbells, shared, not cached */
  __u32 sq_doorbell; /* out: octets from the beginning of that page */
  __u32 cq_doorbell;
  __u64 sq_offset; /* of the queue in a pinned buffer; 0 in queue memory */
  __u64 cq_offset;
};

/* Identify data of such a controller: CNS 0 of a namespace, 1 of the controller, 2 for the list of namespaces. Needs
 * CAP_SYS_RAWIO. */
struct xio_kmod_identify {
  struct xio_kmod_pci device;
  __u32 cns;
  __u32 nsid;
  __u64 data; /* where 4096 octets go */
  __u64 cap;  /* out: register CAP */
  __u64 reserved;
};

#define XIO_KMOD_MAGIC 0xd8
#define XIO_KMOD_INFO _IOWR(XIO_KMOD_MAGIC, 0, struct xio_kmod_info)
#define XIO_KMOD_PIN _IOWR(XIO_KMOD_MAGIC, 1, struct xio_kmod_pin)
#define XIO_KMOD_SEGMENTS _IOWR(XIO_KMOD_MAGIC, 2, struct xio_kmod_segments)
#define XIO_KMOD_MEMORY _IOWR(XIO_KMOD_MAGIC, 3, struct xio_kmod_memory)
#define XIO_KMOD_RELEASE _IOWR(XIO_KMOD_MAGIC, 4, struct xio_kmod_release)
#define XIO_KMOD_QUEUE_PAIR _IOWR(XIO_KMOD_MAGIC, 5, struct xio_kmod_queue_pair)
#define XIO_KMOD_IDENTIFY _IOWR(XIO_KMOD_MAGIC, 6, struct xio_kmod_identify)

#endif
