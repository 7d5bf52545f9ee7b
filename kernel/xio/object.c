// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Objects: handles, owners, mappings, and their end. */
#include <linux/version.h>
#include <linux/xarray.h>

#include "xio.h"

DEFINE_MUTEX(xio_lock);
/* One table for all opens: a handle is then also the place in the file, and no two opens share one. */
static DEFINE_XARRAY_ALLOC1(objects);
static u32 next_handle;
#define HANDLE_LIMIT XA_LIMIT(1, (1u << 30) - 1)

static void object_end(struct kref* refs) {
  struct xio_object* object = container_of(refs, struct xio_object, refs);

  pci_dev_put(object->pdev);
  mutex_destroy(&object->map_lock);
  mutex_destroy(&object->end_lock);
  object->kind->free(object);
}

void xio_object_put(struct xio_object* object) { kref_put(&object->refs, object_end); }

/* Where it fails, the object is as before: the caller's, without references. */
int xio_object_add(struct xio_object* object, const struct xio_kind* kind, struct xio_open* owner,
                   struct pci_dev* pdev) {
  int status;

  lockdep_assert_held(&xio_lock);
  if (owner->objects >= XIO_MAX_OBJECTS) return -ENOSPC;
  kref_init(&object->refs);
  mutex_init(&object->map_lock);
  mutex_init(&object->end_lock);
  object->kind = kind;
  object->owner = owner;
  object->pdev = pdev;
  object->alive = true;
  /* Numbers come round late: a handle kept for too long is no other's for a while. */
  status = xa_alloc_cyclic(&objects, &object->handle, object, HANDLE_LIMIT, &next_handle, GFP_KERNEL);
  if (status < 0) {
    mutex_destroy(&object->map_lock);
    mutex_destroy(&object->end_lock);
    return status;
  }
  pci_dev_get(pdev);
  owner->objects++;
  return 0;
}

/* kind NULL: any. Takes a reference to the object that it returns. */
struct xio_object* xio_object_find(struct xio_open* owner, u32 handle, const struct xio_kind* kind) {
  struct xio_object* object;

  xa_lock(&objects);
  object = xa_load(&objects, handle);
  if (object && object->owner == owner && !READ_ONCE(object->released) && (!kind || object->kind == kind))
    kref_get(&object->refs);
  else
    object = NULL;
  xa_unlock(&objects);
  return object;
}

/* The first call retires the object; others return when that is done. */
static void retire(struct xio_object* object) {
  bool alive;

  mutex_lock(&object->end_lock);
  mutex_lock(&object->map_lock);
  alive = object->alive;
  object->alive = false;
  mutex_unlock(&object->map_lock);
  if (alive) {
    /* From here on faults end in SIGBUS. */
    if (object->map_bytes)
      unmap_mapping_range(object->owner->mapping, (loff_t)xio_object_offset(object), (loff_t)object->map_bytes, 1);
    object->kind->retire(object);
  }
  mutex_unlock(&object->end_lock);
}

/* It leaves the table when it is retired and not before: its device may be losing its driver, and has to find it. */
static void release(struct xio_object* object) {
  struct xio_open* owner = object->owner;

  retire(object);
  mutex_lock(&xio_lock);
  owner->objects--;
  mutex_unlock(&xio_lock);
  xa_erase(&objects, object->handle);
  xio_object_put(object);
}

int xio_object_release(struct xio_open* owner, u32 handle) {
  struct xio_object* object = xio_object_find(owner, handle, NULL);
  int status = 0;

  if (!object) return -ENOENT;
  mutex_lock(&xio_lock);
  if (object->released)
    status = -ENOENT; /* by another thread, in between */
  else if (object->users)
    status = -EBUSY;
  else
    WRITE_ONCE(object->released, true);
  mutex_unlock(&xio_lock);
  if (!status) release(object);
  xio_object_put(object);
  return status;
}

/* The next from *handle on of an open or of a device, referenced. */
static struct xio_object* next_of(const struct xio_open* owner, const struct pci_dev* pdev, unsigned long* handle) {
  struct xio_object* object;

  xa_lock(&objects);
  for (object = xa_find(&objects, handle, ULONG_MAX, XA_PRESENT); object;
       object = xa_find_after(&objects, handle, ULONG_MAX, XA_PRESENT))
    if (owner ? object->owner == owner : object->pdev == pdev) {
      kref_get(&object->refs);
      break;
    }
  xa_unlock(&objects);
  return object;
}

/* Queue pairs end before the memory that their controllers write to. */
static void end_all(const struct xio_open* owner, const struct pci_dev* pdev) {
  int pass;

  for (pass = 0; pass < 2; ++pass) {
    struct xio_object* object;
    unsigned long handle = 0;

    while ((object = next_of(owner, pdev, &handle))) {
      if (pass == 1 || object->kind->first) {
        if (owner)
          release(object);
        else
          retire(object);
      }
      xio_object_put(object);
      handle++;
      cond_resched();
    }
  }
}

/* No call of this open is under way. */
void xio_objects_release_all(struct xio_open* owner) { end_all(owner, NULL); }

/* Also waits for those that are being released: when it returns, nothing of the device is in use. */
void xio_objects_retire_device(struct pci_dev* pdev) { end_all(NULL, pdev); }

/* ---- mappings -------------------------------------------------------------------------------------------------- */

static void mapping_open(struct vm_area_struct* vma) {
  struct xio_object* object = vma->vm_private_data;

  kref_get(&object->refs);
}

static void mapping_close(struct vm_area_struct* vma) { xio_object_put(vma->vm_private_data); }

/* Page by page and not at once in mmap: a mapping that is being made is not yet found by unmap_mapping_range. */
static vm_fault_t mapping_fault(struct vm_fault* fault) {
  struct xio_object* object = fault->vma->vm_private_data;
  unsigned long page = fault->pgoff - (unsigned long)(xio_object_offset(object) >> PAGE_SHIFT);
  vm_fault_t result = VM_FAULT_SIGBUS;

  mutex_lock(&object->map_lock);
  if (object->alive && page < object->map_bytes >> PAGE_SHIFT) result = object->kind->show(object, fault, page);
  mutex_unlock(&object->map_lock);
  return result;
}

static const struct vm_operations_struct mapping_operations = {
    .open = mapping_open,
    .close = mapping_close,
    .fault = mapping_fault,
};

static void set_flags(struct vm_area_struct* vma, unsigned long kinds) {
  /* Not copied to a child: the device would go on writing to the parent's queues only. */
  const vm_flags_t set = kinds | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
  vm_flags_mod(vma, set, VM_MAYEXEC);
#else
  vma->vm_flags = (vma->vm_flags | set) & ~VM_MAYEXEC;
#endif
}

int xio_object_mmap(struct xio_open* owner, struct vm_area_struct* vma) {
  const unsigned int shift = XIO_OFFSET_SHIFT - PAGE_SHIFT;
  const unsigned long handle = vma->vm_pgoff >> shift;
  const unsigned long first = vma->vm_pgoff & ((1ul << shift) - 1);
  struct xio_object* object;

  /* A private mapping would be of copies. */
  if (!(vma->vm_flags & VM_SHARED)) return -EINVAL;
  if (vma->vm_flags & VM_EXEC) return -EACCES;
  if (handle > U32_MAX) return -ENOENT;
  object = xio_object_find(owner, (u32)handle, NULL);
  if (!object) return -ENOENT;
  if (first + vma_pages(vma) > object->map_bytes >> PAGE_SHIFT) {
    xio_object_put(object);
    return -EINVAL;
  }
  set_flags(vma, object->kind->flags);
  if (object->uncached) vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
  vma->vm_private_data = object;
  vma->vm_ops = &mapping_operations;
  return 0;
}
