// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Queue memory: pages that a device reaches under one contiguous address, and that a process maps. */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "xio.h"

struct memory {
  struct xio_object object;
  void* pages;
  dma_addr_t address;
  size_t bytes;
  struct xio_charge charge;
};

static struct memory* memory_of(struct xio_object* object) { return container_of(object, struct memory, object); }

/* Of all users together; what one may hold is RLIMIT_MEMLOCK's to say. */
static unsigned int queue_memory_mib = 1024;
module_param(queue_memory_mib, uint, 0644);
MODULE_PARM_DESC(queue_memory_mib, "most MiB of queue memory that programs may hold together");
static u64 total; /* under xio_lock */

/* A page that somebody else holds on to, such as a GPU's driver, is freed when he lets go. */
static void give_back(struct memory* memory, struct pci_dev* pdev) {
  dma_unmap_page(&pdev->dev, memory->address, memory->bytes, DMA_BIDIRECTIONAL);
  free_pages_exact(memory->pages, memory->bytes);
}

/* Counts it for the open and for all, before it is there. */
static int reserve(struct xio_open* open, struct memory* memory) {
  int status = xio_charge(&memory->charge, memory->bytes);

  if (status) return status;
  mutex_lock(&xio_lock);
  if (memory->bytes > XIO_MAX_MEMORY - open->memory || total + memory->bytes > (u64)queue_memory_mib << 20) {
    status = -ENOSPC;
  } else {
    open->memory += memory->bytes;
    total += memory->bytes;
  }
  mutex_unlock(&xio_lock);
  if (status) xio_uncharge(&memory->charge);
  return status;
}

static void unreserve(struct xio_open* open, struct memory* memory) {
  mutex_lock(&xio_lock);
  open->memory -= memory->bytes;
  total -= memory->bytes;
  mutex_unlock(&xio_lock);
  xio_uncharge(&memory->charge);
}

static void memory_retire(struct xio_object* object) {
  struct memory* memory = memory_of(object);

  give_back(memory, object->pdev);
  unreserve(object->owner, memory);
}

static vm_fault_t memory_show(struct xio_object* object, struct vm_fault* fault, unsigned long page) {
  return vmf_insert_page(fault->vma, fault->address, virt_to_page(memory_of(object)->pages + (page << PAGE_SHIFT)));
}

static void memory_free(struct xio_object* object) { kfree(memory_of(object)); }

const struct xio_kind xio_memory_kind = {
    .retire = memory_retire,
    .flags = VM_MIXEDMAP,
    .show = memory_show,
    .free = memory_free,
};

u64 xio_memory_address(const struct xio_object* object) { return container_of(object, struct memory, object)->address; }
u64 xio_memory_bytes(const struct xio_object* object) { return container_of(object, struct memory, object)->bytes; }

/*
 * Single pages, and not what dma_alloc_coherent gives: a fault hands them out one by one, and a GPU's driver can take
 * hold of them like of any memory of the process. They are cached; where the device does not snoop caches they would
 * not do, and are refused. All DMA of x86 snoops; 6.1 cannot tell for a device behind an IOMMU.
 */
static int allocate(struct memory* memory, struct pci_dev* pdev) {
  memory->pages = alloc_pages_exact(memory->bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
  if (!memory->pages) return -ENOMEM;
  memory->address = dma_map_page(&pdev->dev, virt_to_page(memory->pages), 0, memory->bytes, DMA_BIDIRECTIONAL);
  if (dma_mapping_error(&pdev->dev, memory->address)) {
    free_pages_exact(memory->pages, memory->bytes);
    return -ENOMEM;
  }
  if (IS_ENABLED(CONFIG_X86) || !dma_need_sync(&pdev->dev, memory->address)) return 0;
  give_back(memory, pdev);
  return -EOPNOTSUPP;
}

static int allocate_for(struct xio_open* open, struct memory* memory, struct pci_dev* pdev, struct xio_kmod_memory* a) {
  int status = reserve(open, memory);

  if (status) return status;
  status = allocate(memory, pdev);
  if (status) goto unreserve;
  memory->object.map_bytes = memory->bytes;
  a->address = memory->address;
  a->state = xio_device_translated(pdev) ? XIO_KMOD_PINNED_TRANSLATED : 0;
  mutex_lock(&xio_lock);
  status = xio_object_add(&memory->object, &xio_memory_kind, open, pdev);
  if (!status) {
    /* Once the lock is free another thread may have released it. */
    a->handle = memory->object.handle;
    a->offset = xio_object_offset(&memory->object);
  }
  mutex_unlock(&xio_lock);
  if (!status) return 0;
  give_back(memory, pdev);
unreserve:
  unreserve(open, memory);
  return status;
}

long xio_memory(struct xio_open* open, void* argument) {
  struct xio_kmod_memory* a = argument;
  struct memory* memory;
  struct pci_dev* pdev;
  int status;

  if (a->reserved[0] || a->reserved[1] || !a->bytes || a->bytes % PAGE_SIZE || a->bytes > XIO_MAX_BLOCK) return -EINVAL;
  memory = kzalloc(sizeof(*memory), GFP_KERNEL_ACCOUNT);
  if (!memory) return -ENOMEM;
  memory->bytes = a->bytes;
  pdev = xio_device_claim(&a->device);
  if (IS_ERR(pdev)) {
    kfree(memory);
    return PTR_ERR(pdev);
  }
  status = allocate_for(open, memory, pdev, a);
  if (status) kfree(memory);
  xio_device_unclaim(pdev);
  return status;
}
