// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* I/O queue pairs, their doorbell page, and what their holder has to know of the drive. */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "controller.h"
#include "xio.h"

struct queue_pair {
  struct xio_object object;
  struct xio_controller* controller;
  struct xio_object *sq, *cq; /* memory, referenced */
  unsigned int qid;
};

static struct queue_pair* pair_of(struct xio_object* object) { return container_of(object, struct queue_pair, object); }

/* Memory that a queue pair lies in, or will, is not released. */
static void give_memory_back(struct queue_pair* pair) {
  mutex_lock(&xio_lock);
  pair->sq->users--;
  pair->cq->users--;
  mutex_unlock(&xio_lock);
}

static void pair_retire(struct xio_object* object) {
  struct queue_pair* pair = pair_of(object);

  xio_controller_delete(pair->controller, pair->qid);
  give_memory_back(pair);
}

static vm_fault_t pair_show(struct xio_object* object, struct vm_fault* fault, unsigned long page) {
  const struct queue_pair* pair = pair_of(object);
  const u64 first = xio_controller_sq_doorbell(pair->controller, pair->qid) >> PAGE_SHIFT;

  return vmf_insert_pfn(fault->vma, fault->address, (unsigned long)first + page);
}

static void pair_free(struct xio_object* object) {
  struct queue_pair* pair = pair_of(object);

  xio_object_put(pair->sq);
  xio_object_put(pair->cq);
  kfree(pair);
}

static const struct xio_kind pair_kind = {
    .first = true,
    .retire = pair_retire,
    .flags = VM_PFNMAP | VM_IO,
    .show = pair_show,
    .free = pair_free,
};

/* A live object of the device in which no other queue lies. */
static int check_memory(const struct xio_object* memory, const struct pci_dev* pdev) {
  if (memory->released) return -ENOENT;
  if (!memory->alive) return -ENODEV;
  if (memory->pdev != pdev) return -EINVAL;
  return memory->users ? -EBUSY : 0;
}

static int take_memory(struct queue_pair* pair, struct pci_dev* pdev) {
  int status;

  if (!pair->sq || !pair->cq) return -ENOENT;
  if (pair->sq == pair->cq) return -EINVAL;
  mutex_lock(&xio_lock);
  status = check_memory(pair->sq, pdev);
  if (!status) status = check_memory(pair->cq, pdev);
  if (!status) {
    pair->sq->users++;
    pair->cq->users++;
  }
  mutex_unlock(&xio_lock);
  return status;
}

/* Where a queue of that many octets lies on the bus; its memory has been taken, so nobody releases it. */
static int place(struct xio_object* memory, u64 offset, u64 bytes, dma_addr_t* address) {
  if (memory->kind == &xio_pin_kind) return offset % 4096 ? -EINVAL : xio_pin_place(memory, offset, bytes, address);
  if (offset || bytes > xio_memory_bytes(memory)) return -EINVAL;
  *address = xio_memory_address(memory);
  return 0;
}

static int add(struct xio_open* open, struct queue_pair* pair, struct pci_dev* pdev, struct xio_kmod_queue_pair* a) {
  const u64 sq_doorbell = xio_controller_sq_doorbell(pair->controller, pair->qid);
  const u64 cq_doorbell = xio_controller_cq_doorbell(pair->controller, pair->qid);
  int status;

  /* With a stride of a page or more there is no one page; and in a larger page there are registers beside doorbells. */
  if (PAGE_SIZE != 4096 || sq_doorbell >> PAGE_SHIFT != cq_doorbell >> PAGE_SHIFT) return -EOPNOTSUPP;
  pair->object.map_bytes = PAGE_SIZE;
  pair->object.uncached = true;
  mutex_lock(&xio_lock);
  status = xio_object_add(&pair->object, &pair_kind, open, pdev);
  if (!status) {
    a->handle = pair->object.handle;
    a->queue = pair->qid;
    a->offset = xio_object_offset(&pair->object);
    a->sq_doorbell = offset_in_page(sq_doorbell);
    a->cq_doorbell = offset_in_page(cq_doorbell);
  }
  mutex_unlock(&xio_lock);
  return status;
}

/* The device's lock is held, so its memory stays alive. */
static int create(struct xio_open* open, struct queue_pair* pair, struct pci_dev* pdev, struct xio_kmod_queue_pair* a) {
  dma_addr_t sq = 0, cq = 0;
  int status = take_memory(pair, pdev);

  if (status) return status;
  status = place(pair->sq, a->sq_offset, (u64)a->sq_entries * 64, &sq);
  if (!status) status = place(pair->cq, a->cq_offset, (u64)a->cq_entries * 16, &cq);
  if (!status) status = xio_controller_create(pair->controller, sq, a->sq_entries, cq, a->cq_entries);
  if (status > 0) {
    pair->qid = status;
    status = add(open, pair, pdev, a);
    if (!status) return 0;
    xio_controller_delete(pair->controller, pair->qid);
  }
  give_memory_back(pair);
  return status;
}

static int create_for(struct xio_open* open, struct queue_pair* pair, struct xio_kmod_queue_pair* a) {
  struct pci_dev* pdev = xio_device_claim_raw(&a->device);
  int status;

  if (IS_ERR(pdev)) return PTR_ERR(pdev);
  pair->controller = xio_controller_of(pdev);
  /*
   * A driver would have to lend a queue. That of Linux (drivers/nvme) exports nothing of the kind; taking one behind
   * its back would have two owners complete each other's commands.
   */
  status = pair->controller ? create(open, pair, pdev, a) : -EOPNOTSUPP;
  xio_device_unclaim(pdev);
  return status;
}

/* Memory that queues may lie in: another kind is as good as none. */
static struct xio_object* find_memory(struct xio_open* open, u32 handle) {
  struct xio_object* memory = xio_object_find(open, handle, &xio_memory_kind);

  return memory ? memory : xio_object_find(open, handle, &xio_pin_kind);
}

long xio_queue_pair(struct xio_open* open, void* argument) {
  struct xio_kmod_queue_pair* a = argument;
  struct queue_pair* pair;
  int status;

  pair = kzalloc(sizeof(*pair), GFP_KERNEL_ACCOUNT);
  if (!pair) return -ENOMEM;
  pair->sq = find_memory(open, a->sq_memory);
  pair->cq = find_memory(open, a->cq_memory);
  status = create_for(open, pair, a);
  if (!status) return 0;
  if (pair->sq) xio_object_put(pair->sq);
  if (pair->cq) xio_object_put(pair->cq);
  kfree(pair);
  return status;
}

long xio_identify(struct xio_open* open, void* argument) {
  struct xio_kmod_identify* a = argument;
  struct xio_controller* controller;
  struct pci_dev* pdev;
  void* data;
  int status;

  if (a->reserved || a->cns > 2) return -EINVAL;
  data = (void*)__get_free_page(GFP_KERNEL);
  if (!data) return -ENOMEM;
  pdev = xio_device_claim_raw(&a->device);
  if (IS_ERR(pdev)) {
    status = PTR_ERR(pdev);
    goto free;
  }
  controller = xio_controller_of(pdev);
  status = -EOPNOTSUPP;
  if (controller) {
    a->cap = xio_controller_cap(controller);
    status = xio_controller_identify(controller, a->cns, a->nsid, data);
  }
  xio_device_unclaim(pdev);
  if (!status && copy_to_user(u64_to_user_ptr(a->data), data, 4096)) status = -EFAULT;
free:
  free_page((unsigned long)data);
  return status;
}
