// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * For tests: exports a BAR of a PCI function as a dma-buf, as the driver of a GPU exports device memory. An ioctl on
 * /dev/bar_export returns its descriptor. The buffer's pieces lie in the BAR in reverse order, so that neighbours in
 * the buffer are none on the bus. An importer that does not take memory of peers is refused, as nothing is moved here.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/version.h>

static char* device = "";
module_param(device, charp, 0444);
static int bar = 2;
module_param(bar, int, 0444);
static unsigned int piece = 65536;
module_param(piece, uint, 0444);

static struct pci_dev* function;
static phys_addr_t start;
static size_t bytes;

static size_t pieces(void) { return bytes / piece; }
static phys_addr_t place_of(size_t i) { return start + (pieces() - 1 - i) * piece; }

static int attach(struct dma_buf* buffer, struct dma_buf_attachment* a) { return a->peer2peer ? 0 : -EREMOTEIO; }
static int pin(struct dma_buf_attachment* a) { return 0; }
static void unpin(struct dma_buf_attachment* a) {}

static void drop(struct dma_buf_attachment* a, struct sg_table* table, size_t mapped, enum dma_data_direction way) {
  struct scatterlist* entry;
  unsigned int i;

  for_each_sgtable_dma_sg(table, entry, i) {
    if (i == mapped) break;
    dma_unmap_resource(a->dev, sg_dma_address(entry), sg_dma_len(entry), way, DMA_ATTR_SKIP_CPU_SYNC);
  }
  sg_free_table(table);
  kfree(table);
}

static struct sg_table* map(struct dma_buf_attachment* a, enum dma_data_direction way) {
  struct sg_table* table = kzalloc(sizeof(*table), GFP_KERNEL);
  struct scatterlist* entry;
  unsigned int i;

  if (!table || sg_alloc_table(table, pieces(), GFP_KERNEL)) {
    kfree(table);
    return ERR_PTR(-ENOMEM);
  }
  for_each_sgtable_dma_sg(table, entry, i) {
    const dma_addr_t at = dma_map_resource(a->dev, place_of(i), piece, way, DMA_ATTR_SKIP_CPU_SYNC);

    if (dma_mapping_error(a->dev, at)) {
      drop(a, table, i, way);
      return ERR_PTR(-EIO);
    }
    sg_dma_address(entry) = at;
    sg_dma_len(entry) = piece;
  }
  return table;
}

static void unmap(struct dma_buf_attachment* a, struct sg_table* table, enum dma_data_direction way) {
  drop(a, table, table->nents, way);
}

static int to_program(struct dma_buf* buffer, struct vm_area_struct* vma) {
  const size_t first = vma->vm_pgoff << PAGE_SHIFT, end = first + (vma->vm_end - vma->vm_start);
  size_t at;

  if (end > bytes || first % piece || end % piece) return -EINVAL;
  vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
  for (at = first; at < end; at += piece) {
    const int status = io_remap_pfn_range(vma, vma->vm_start + (at - first), place_of(at / piece) >> PAGE_SHIFT, piece,
                                          vma->vm_page_prot);

    if (status) return status;
  }
  return 0;
}

static void forget(struct dma_buf* buffer) {}

static const struct dma_buf_ops operations = {
    .attach = attach,
    .pin = pin,
    .unpin = unpin,
    .map_dma_buf = map,
    .unmap_dma_buf = unmap,
    .mmap = to_program,
    .release = forget,
};

static long export(struct file* file, unsigned int request, unsigned long argument) {
  DEFINE_DMA_BUF_EXPORT_INFO(info);
  struct dma_buf* buffer;
  int fd;

  info.ops = &operations;
  info.size = bytes;
  info.flags = O_RDWR;
  info.priv = &function;
  buffer = dma_buf_export(&info);
  if (IS_ERR(buffer)) return PTR_ERR(buffer);
  fd = dma_buf_fd(buffer, O_CLOEXEC);
  if (fd < 0) dma_buf_put(buffer);
  return fd;
}

static const struct file_operations files = {.owner = THIS_MODULE, .unlocked_ioctl = export};
static struct miscdevice node = {.minor = MISC_DYNAMIC_MINOR, .name = "bar_export", .fops = &files, .mode = 0600};

static int __init load(void) {
  unsigned int domain, bus, slot, number;
  int status;

  if (sscanf(device, "%x:%x:%x.%x", &domain, &bus, &slot, &number) != 4 || bar < 0 || bar > 5 || piece < PAGE_SIZE)
    return -EINVAL;
  function = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, number));
  if (!function) return -ENODEV;
  status = pci_enable_device_mem(function);
  if (status) goto put;
  start = pci_resource_start(function, bar);
  bytes = pci_resource_len(function, bar);
  status = bytes && bytes % piece == 0 && piece % PAGE_SIZE == 0 ? misc_register(&node) : -EINVAL;
  if (!status) return 0;
  pci_disable_device(function);
put:
  pci_dev_put(function);
  return status;
}

static void __exit unload(void) {
  misc_deregister(&node);
  pci_disable_device(function);
  pci_dev_put(function);
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("A BAR as a dma-buf, for tests");
MODULE_LICENSE("Dual MIT/GPL");
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS("DMA_BUF");
#else
MODULE_IMPORT_NS(DMA_BUF);
#endif
