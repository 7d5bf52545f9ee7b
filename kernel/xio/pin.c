// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* dma-bufs, pinned for a device, and where they lie on its bus. */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "xio.h"

struct pin {
  struct xio_object object;
  struct dma_buf* dmabuf;
  struct dma_buf_attachment* attachment;
  struct sg_table* table;
  struct xio_charge charge;
  bool ready; /* pinned and mapped: from here on a move is against the exporter's word */
  bool moved;
};

static struct pin* pin_of(struct xio_object* object) { return container_of(object, struct pin, object); }

/* Called with the reservation held. While it is being pinned a buffer may still move, to where it then stays. */
static void moved(struct dma_buf_attachment* attachment) {
  struct pin* pin = attachment->importer_priv;

  if (!READ_ONCE(pin->ready)) return;
  WRITE_ONCE(pin->moved, true);
  dev_warn_ratelimited(attachment->dev, "xio: a pinned dma-buf has moved\n");
}

static const struct dma_buf_attach_ops importer = {
    .allow_peer2peer = true,
#ifdef XIO_MOVES_INVALIDATE /* by Kbuild, from the kernel's own header */
    .invalidate_mappings = moved,
#else
    .move_notify = moved,
#endif
};

static void unmap_and_unpin(struct pin* pin) {
  dma_resv_lock(pin->dmabuf->resv, NULL);
  dma_buf_unmap_attachment(pin->attachment, pin->table, DMA_BIDIRECTIONAL);
  dma_buf_unpin(pin->attachment);
  dma_resv_unlock(pin->dmabuf->resv);
}

static void pin_retire(struct xio_object* object) {
  struct pin* pin = pin_of(object);

  unmap_and_unpin(pin);
  dma_buf_detach(pin->dmabuf, pin->attachment);
  dma_buf_put(pin->dmabuf);
  xio_uncharge(&pin->charge);
}

static void pin_free(struct xio_object* object) { kfree(pin_of(object)); }

const struct xio_kind xio_pin_kind = {
    .retire = pin_retire,
    .free = pin_free,
};

/* Waits for the moves that are under way, as the addresses are used without asking the fences. */
static int pin_and_map(struct pin* pin) {
  struct dma_resv* reservation = pin->dmabuf->resv;
  long waited;
  int status;

  status = dma_resv_lock_interruptible(reservation, NULL);
  if (status) return status;
  status = dma_buf_pin(pin->attachment);
  if (status) goto unlock;
  pin->table = dma_buf_map_attachment(pin->attachment, DMA_BIDIRECTIONAL);
  if (IS_ERR(pin->table)) {
    status = PTR_ERR(pin->table);
    goto unpin;
  }
  waited = dma_resv_wait_timeout(reservation, DMA_RESV_USAGE_KERNEL, true, 10 * HZ);
  if (waited <= 0) {
    status = waited ? (int)waited : -ETIME;
    goto unmap;
  }
  WRITE_ONCE(pin->ready, true);
  dma_resv_unlock(reservation);
  return 0;
unmap:
  dma_buf_unmap_attachment(pin->attachment, pin->table, DMA_BIDIRECTIONAL);
unpin:
  dma_buf_unpin(pin->attachment);
unlock:
  dma_resv_unlock(reservation);
  return status;
}

/* Exporters that cannot be reached by a peer, or that pin in system memory only, say nothing: where it lies now is what
 * counts. */
static int all_device_memory(struct pin* pin, struct pci_dev* pdev) {
  struct scatterlist* entry;
  unsigned int i;

  for_each_sgtable_dma_sg(pin->table, entry, i) {
    const int ram = xio_device_sees_ram(pdev, sg_dma_address(entry), sg_dma_len(entry));

    if (ram) return ram < 0 ? ram : 0;
    if (fatal_signal_pending(current)) return -EINTR;
    cond_resched();
  }
  return 1;
}

/* For the device whose lock is held. */
static int attach(struct pin* pin, struct pci_dev* pdev, struct xio_kmod_pin* a) {
  int status, on_device;

  pin->attachment = dma_buf_dynamic_attach(pin->dmabuf, &pdev->dev, &importer, pin);
  if (IS_ERR(pin->attachment)) return PTR_ERR(pin->attachment);
  status = pin_and_map(pin);
  if (status) goto detach;
  a->segments = pin->table->nents;
  a->bytes = pin->dmabuf->size;
  on_device = a->segments > XIO_MAX_SEGMENTS ? -E2BIG : all_device_memory(pin, pdev);
  a->state =
      (on_device > 0 ? XIO_KMOD_PINNED_DEVICE : 0) | (xio_device_translated(pdev) ? XIO_KMOD_PINNED_TRANSLATED : 0);
  if (on_device < 0)
    status = on_device;
  else if ((a->flags & XIO_KMOD_PIN_DEVICE) && !(a->state & XIO_KMOD_PINNED_DEVICE))
    status = -EREMOTEIO;
  else
    return 0;
  unmap_and_unpin(pin);
detach:
  dma_buf_detach(pin->dmabuf, pin->attachment);
  return status;
}

static int pin_for(struct xio_open* open, struct pin* pin, struct pci_dev* pdev, struct xio_kmod_pin* a) {
  int status = attach(pin, pdev, a);

  if (status) return status;
  mutex_lock(&xio_lock);
  status = xio_object_add(&pin->object, &xio_pin_kind, open, pdev);
  /* Once the lock is free another thread may have released it. */
  if (!status) a->handle = pin->object.handle;
  mutex_unlock(&xio_lock);
  if (status) {
    unmap_and_unpin(pin);
    dma_buf_detach(pin->dmabuf, pin->attachment);
  }
  return status;
}

long xio_pin(struct xio_open* open, void* argument) {
  struct xio_kmod_pin* a = argument;
  struct pci_dev* pdev;
  struct pin* pin;
  int status;

  if ((a->flags & ~XIO_KMOD_PIN_DEVICE) || a->reserved0 || a->reserved[0] || a->reserved[1]) return -EINVAL;
  pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
  if (!pin) return -ENOMEM;
  pin->dmabuf = dma_buf_get(a->dmabuf);
  if (IS_ERR(pin->dmabuf)) {
    status = PTR_ERR(pin->dmabuf);
    goto free;
  }
  pdev = xio_device_claim(&a->device);
  if (IS_ERR(pdev)) {
    status = PTR_ERR(pdev);
    goto put;
  }
  status = xio_charge(&pin->charge, pin->dmabuf->size);
  if (!status) status = pin_for(open, pin, pdev, a);
  xio_device_unclaim(pdev);
  if (!status) return 0;
  xio_uncharge(&pin->charge);
put:
  dma_buf_put(pin->dmabuf);
free:
  kfree(pin);
  return status;
}

/* ---- segments -------------------------------------------------------------------------------------------------- */

/* Fills `page` from the list's place `first` on; returns the number of segments, or an error. */
static int gather(struct pin* pin, u32 first, u32 count, struct xio_kmod_segment* page) {
  struct scatterlist* entry;
  unsigned int i;
  u32 n = 0;

  mutex_lock(&pin->object.map_lock);
  if (!pin->object.alive) {
    mutex_unlock(&pin->object.map_lock);
    return -ENODEV;
  }
  for_each_sgtable_dma_sg(pin->table, entry, i) {
    if (i < first) continue;
    if (n == count) break;
    page[n].address = sg_dma_address(entry);
    page[n].bytes = sg_dma_len(entry);
    ++n;
  }
  mutex_unlock(&pin->object.map_lock);
  return READ_ONCE(pin->moved) ? -ESTALE : (int)n;
}

static int find_place(struct sg_table* table, u64 offset, u64 bytes, dma_addr_t* address) {
  struct scatterlist* entry;
  u64 at = 0, found = 0;
  unsigned int i;

  for_each_sgtable_dma_sg(table, entry, i) {
    const u64 length = sg_dma_len(entry), skip = !found && offset > at ? offset - at : 0;

    at += length;
    if (skip >= length) continue;
    if (!found)
      *address = sg_dma_address(entry) + skip;
    else if (sg_dma_address(entry) != *address + found)
      return -EINVAL;
    found += length - skip;
    if (found >= bytes) return 0;
  }
  return -EINVAL;
}

int xio_pin_place(struct xio_object* object, u64 offset, u64 bytes, dma_addr_t* address) {
  struct pin* pin = pin_of(object);
  int status;

  mutex_lock(&object->map_lock);
  if (!object->alive)
    status = -ENODEV;
  else if (READ_ONCE(pin->moved))
    status = -ESTALE;
  else
    status = find_place(pin->table, offset, bytes, address);
  mutex_unlock(&object->map_lock);
  /* Controllers take whole pages of 4 KiB, also where those of the system are larger. */
  return !status && (*address & 4095) ? -EINVAL : status;
}

long xio_segments(struct xio_open* open, void* argument) {
  const u32 room = PAGE_SIZE / sizeof(struct xio_kmod_segment);
  struct xio_kmod_segments* a = argument;
  struct xio_kmod_segment __user* to = u64_to_user_ptr(a->array);
  struct xio_kmod_segment* page;
  struct xio_object* object;
  u32 written = 0;
  int n = 0;

  if (a->reserved0 || a->reserved || a->count > XIO_MAX_SEGMENTS) return -EINVAL;
  object = xio_object_find(open, a->handle, &xio_pin_kind);
  if (!object) return -ENOENT;
  page = (void*)__get_free_page(GFP_KERNEL);
  if (!page) {
    xio_object_put(object);
    return -ENOMEM;
  }
  while (written < a->count) {
    /* No list is longer; and the sum fits. */
    if ((u64)a->first + written >= XIO_MAX_SEGMENTS) break;
    n = gather(pin_of(object), a->first + written, min(a->count - written, room), page);
    if (n <= 0) break;
    if (copy_to_user(to + written, page, n * sizeof(*page))) {
      n = -EFAULT;
      break;
    }
    written += n;
    if (fatal_signal_pending(current)) {
      n = -EINTR;
      break;
    }
    cond_resched();
  }
  free_page((unsigned long)page);
  xio_object_put(object);
  a->count = written;
  return n < 0 ? n : 0;
}
