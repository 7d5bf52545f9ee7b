/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The module in one view. Objects (a pinned buffer, queue memory, a queue pair) are owned by an open of /dev/xio and
 * tied to a PCI device; they are retired when the handle is released, the open ends, or the device loses its driver.
 *
 * Locks, outermost first: the device's lock, an object's end_lock, then one of these: a controller's own, a dma-buf's
 * reservation, an object's map_lock; xio_lock last. xio_lock keeps counts and is held for some instructions: nothing
 * waits for a device or for memory under it. No call copies from or to a user with map_lock held: page faults take
 * mmap_lock, and under it map_lock.
 */
#ifndef XIO_H
#define XIO_H

#include <linux/device.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/types.h>

#include "xio_uapi.h"

#define XIO_MAX_OBJECTS 256u
#define XIO_MAX_SEGMENTS (1u << 18)
#define XIO_MAX_BLOCK (4ull << 20) /* 65536 entries of 64 octets, and what the page allocator gives in one piece */
#define XIO_MAX_MEMORY (64ull << 20)
#define XIO_OFFSET_SHIFT 28 /* each object has a range of its own in the file: what is zapped is nobody else's */

struct xio_open {
  struct address_space* mapping;
  unsigned int objects; /* under xio_lock, as the next */
  u64 memory;
};

struct xio_object;

struct xio_kind {
  bool first; /* retired before the others, which it uses */
  /* Gives back all that the device knows of; end_lock held, the device still there, no user mapping left. */
  void (*retire)(struct xio_object* object);
  /* Puts the page of that number into a mapping; map_lock held and the object alive. */
  vm_fault_t (*show)(struct xio_object* object, struct vm_fault* fault, unsigned long page);
  unsigned long flags; /* of such a mapping */
  void (*free)(struct xio_object* object);
};

/* The pages that are charged to a user; all zero: none. */
struct xio_charge {
  struct user_struct* user;
  unsigned long pages;
};

struct xio_object {
  struct kref refs;
  const struct xio_kind* kind;
  struct xio_open* owner;
  struct pci_dev* pdev;
  u32 handle;
  unsigned int users;    /* under xio_lock, as the next: queue pairs in this memory */
  bool released;         /* its handle is nobody's any more */
  struct mutex end_lock; /* of retiring: when it is free, the object has been retired or will be by another */
  struct mutex map_lock; /* keeps `alive` */
  bool alive;            /* false: the handle is known, what it stood for is gone */
  u64 map_bytes;         /* 0: nothing to map */
  bool uncached;
};

extern struct mutex xio_lock;

/* account.c. -ENOMEM: more than RLIMIT_MEMLOCK for this user. */
int xio_charge(struct xio_charge* charge, u64 bytes);
void xio_uncharge(struct xio_charge* charge);

/* object.c: none with xio_lock held but xio_object_add. The device's lock is held where one is added, and where those
 * of a device are retired. */
int xio_object_add(struct xio_object* object, const struct xio_kind* kind, struct xio_open* owner,
                   struct pci_dev* pdev);
struct xio_object* xio_object_find(struct xio_open* owner, u32 handle, const struct xio_kind* kind);
void xio_object_put(struct xio_object* object);
int xio_object_release(struct xio_open* owner, u32 handle);
void xio_objects_release_all(struct xio_open* owner);
void xio_objects_retire_device(struct pci_dev* pdev);
int xio_object_mmap(struct xio_open* owner, struct vm_area_struct* vma);
static inline u64 xio_object_offset(const struct xio_object* object) { return (u64)object->handle << XIO_OFFSET_SHIFT; }

/* device.c */
/* A device with its driver and its lock held; the caller may have addresses on its bus. */
struct pci_dev* xio_device_claim(const struct xio_kmod_pci* name);
/* The same for a controller's registers and queues. */
struct pci_dev* xio_device_claim_raw(const struct xio_kmod_pci* name);
void xio_device_unclaim(struct pci_dev* pdev);
bool xio_device_translated(struct pci_dev* pdev);
/* Whether a byte of that on its bus ends in system memory; -EINTR: this process is being killed. */
int xio_device_sees_ram(struct pci_dev* pdev, dma_addr_t address, u64 bytes);
int xio_device_watch(void);
void xio_device_unwatch(void);

/* pin.c, memory.c, queue_pair.c: one function per ioctl; arguments are checked but for what only they know. */
extern const struct xio_kind xio_memory_kind;
extern const struct xio_kind xio_pin_kind;
long xio_pin(struct xio_open* open, void* argument);
long xio_segments(struct xio_open* open, void* argument);
long xio_memory(struct xio_open* open, void* argument);
long xio_queue_pair(struct xio_open* open, void* argument);
long xio_identify(struct xio_open* open, void* argument);
u64 xio_memory_address(const struct xio_object* object);
u64 xio_memory_bytes(const struct xio_object* object);
/* Where [offset, offset + bytes) of a pinned buffer lies on the bus. -EINVAL: not in whole pages, or not in one piece.
 */
int xio_pin_place(struct xio_object* object, u64 offset, u64 bytes, dma_addr_t* address);

#endif
