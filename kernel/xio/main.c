// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* /dev/xio: opens, and the way from an ioctl's number to its function. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "controller.h"
#include "xio.h"

static long xio_info(struct xio_open* open, void* argument) {
  struct xio_kmod_info* a = argument;

  if (a->version || a->features || a->max_objects || a->max_segments || a->max_memory || a->max_block ||
      a->reserved[0] || a->reserved[1])
    return -EINVAL;
  a->version = XIO_KMOD_VERSION;
  a->features = XIO_KMOD_HAS_PIN | XIO_KMOD_HAS_MEMORY | XIO_KMOD_HAS_QUEUE_PAIR | XIO_KMOD_HAS_PINNED_QUEUES;
  a->max_objects = XIO_MAX_OBJECTS;
  a->max_segments = XIO_MAX_SEGMENTS;
  a->max_memory = XIO_MAX_MEMORY;
  a->max_block = XIO_MAX_BLOCK;
  return 0;
}

static long xio_release(struct xio_open* open, void* argument) {
  const struct xio_kmod_release* a = argument;

  return a->reserved ? -EINVAL : xio_object_release(open, a->handle);
}

static const struct {
  unsigned int number; /* with the size and the direction in it */
  long (*function)(struct xio_open* open, void* argument);
} calls[] = {
    {XIO_KMOD_INFO, xio_info},         {XIO_KMOD_PIN, xio_pin},         {XIO_KMOD_SEGMENTS, xio_segments},
    {XIO_KMOD_MEMORY, xio_memory},     {XIO_KMOD_RELEASE, xio_release}, {XIO_KMOD_QUEUE_PAIR, xio_queue_pair},
    {XIO_KMOD_IDENTIFY, xio_identify},
};

union arguments {
  struct xio_kmod_info info;
  struct xio_kmod_pin pin;
  struct xio_kmod_segments segments;
  struct xio_kmod_memory memory;
  struct xio_kmod_release release;
  struct xio_kmod_queue_pair queue_pair;
  struct xio_kmod_identify identify;
};

static long ioctl(struct file* file, unsigned int number, unsigned long user) {
  const size_t bytes = _IOC_SIZE(number);
  union arguments argument;
  unsigned int i;
  long status;

  for (i = 0; i < ARRAY_SIZE(calls); ++i)
    if (calls[i].number == number) break;
  if (i == ARRAY_SIZE(calls)) return -ENOTTY;
  if (copy_from_user(&argument, (void __user*)user, bytes)) return -EFAULT;
  status = calls[i].function(file->private_data, &argument);
  if (!status && copy_to_user((void __user*)user, &argument, bytes)) status = -EFAULT;
  return status;
}

static int open(struct inode* inode, struct file* file) {
  struct xio_open* open = kzalloc(sizeof(*open), GFP_KERNEL_ACCOUNT);

  if (!open) return -ENOMEM;
  open->mapping = file->f_mapping;
  file->private_data = open;
  return 0;
}

static int close(struct inode* inode, struct file* file) {
  struct xio_open* open = file->private_data;

  xio_objects_release_all(open);
  kfree(open);
  return 0;
}

static int map(struct file* file, struct vm_area_struct* vma) { return xio_object_mmap(file->private_data, vma); }

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = open,
    .release = close,
    .unlocked_ioctl = ioctl,
    .compat_ioctl = compat_ptr_ioctl, /* no member's size or place depends on the word size */
    .mmap = map,
};

/* The group is udev's to set: 60-xio.rules. */
static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = "xio",
    .fops = &operations,
    .mode = 0660,
};

static int __init load(void) {
  int status = xio_device_watch();

  if (status) return status;
  status = xio_controllers_register();
  if (status) goto unwatch;
  status = misc_register(&device);
  if (!status) return 0;
  xio_controllers_unregister();
unwatch:
  xio_device_unwatch();
  return status;
}

static void __exit unload(void) {
  misc_deregister(&device);
  xio_controllers_unregister();
  xio_device_unwatch();
}

module_init(load);
module_exit(unload);

MODULE_DESCRIPTION("Pinned dma-bufs, queue memory and NVMe queue pairs for programs whose GPUs drive devices (XIO)");
MODULE_AUTHOR("The XIO authors");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION("0.1.0");
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS("DMA_BUF");
#else
MODULE_IMPORT_NS(DMA_BUF);
#endif
