// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* PCI devices: which users may use one, and the notifier that reports that one goes away. */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/notifier.h>
#include <linux/panic.h>
#include <linux/sched/signal.h>
#include <linux/security.h>

#include "xio.h"

/* Returns whether the DMA API gives out addresses of an IOMMU; -EBUSY where the DMA API does not own the IOMMU. */
static int translation(struct pci_dev* pdev) {
  struct iommu_domain* domain = iommu_get_domain_for_dev(&pdev->dev);

  if (!domain || domain->type == IOMMU_DOMAIN_IDENTITY) return 0;
  return iommu_is_dma_domain(domain) ? 1 : -EBUSY;
}

bool xio_device_translated(struct pci_dev* pdev) { return translation(pdev) == 1; }

static bool is_ram(phys_addr_t from, u64 bytes) {
  return region_intersects(from, bytes, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) != REGION_DISJOINT;
}

/* Checks every page of the range. Pages that are contiguous in memory are looked up together. */
int xio_device_sees_ram(struct pci_dev* pdev, dma_addr_t address, u64 bytes) {
  struct iommu_domain* domain = xio_device_translated(pdev) ? iommu_get_domain_for_dev(&pdev->dev) : NULL;
  const dma_addr_t end = PAGE_ALIGN(address + bytes);
  phys_addr_t from = 0, to = 0;

  address &= PAGE_MASK;
  if (!domain) return is_ram(address, end - address);
  for (; address < end; address += PAGE_SIZE) {
    const phys_addr_t where = iommu_iova_to_phys(domain, address);

    if (where != to || from == to) {
      if (from != to && is_ram(from, to - from)) return 1;
      from = where;
    }
    to = where + PAGE_SIZE;
    if (fatal_signal_pending(current)) return -EINTR;
    cond_resched();
  }
  return from != to && is_ram(from, to - from);
}

/* As vfio does without an IOMMU: what goes wrong in this kernel from here on may be the work of a device. */
static void taint(struct pci_dev* pdev) {
  static atomic_t warned = ATOMIC_INIT(0);

  if (atomic_xchg(&warned, 1)) return;
  add_taint(TAINT_USER, LOCKDEP_STILL_OK);
  pci_warn(pdev, "xio: given to a program without an IOMMU, and reaches all memory; the kernel is tainted\n");
}

static int check(struct pci_dev* pdev, bool raw) {
  struct pci_driver* driver;
  int translated, status;

  if (!pdev->dev.driver) return -ENODEV;
  driver = to_pci_driver(pdev->dev.driver);
  if (driver->driver_managed_dma) return -EBUSY;
  translated = translation(pdev);
  if (translated < 0) return translated;
  if (raw || !translated) {
    if (!capable(CAP_SYS_RAWIO)) return -EPERM;
    /* Registers of a device, or its reach of all memory, are what lockdown keeps from root (kernel_lockdown.7). */
    status = security_locked_down(LOCKDOWN_PCI_ACCESS);
    if (status) return status;
  }
  /* A limit on what can be mapped at once is the size of a bounce buffer: writes would reach the memory late or never.
   */
  if (dma_max_mapping_size(&pdev->dev) != SIZE_MAX) return -EOPNOTSUPP;
  if (!translated) taint(pdev);
  return 0;
}

static struct pci_dev* claim(const struct xio_kmod_pci* name, bool raw) {
  struct pci_dev* pdev;
  int status;

  if (name->reserved || name->slot > 31 || name->function > 7 || name->domain > INT_MAX) return ERR_PTR(-EINVAL);
  pdev = pci_get_domain_bus_and_slot((int)name->domain, name->bus, PCI_DEVFN(name->slot, name->function));
  if (!pdev) return ERR_PTR(-ENODEV);
  status = device_lock_interruptible(&pdev->dev);
  if (status) {
    pci_dev_put(pdev);
    return ERR_PTR(status);
  }
  status = check(pdev, raw);
  if (status) {
    xio_device_unclaim(pdev);
    return ERR_PTR(status);
  }
  return pdev;
}

struct pci_dev* xio_device_claim(const struct xio_kmod_pci* name) {
  return claim(name, false);
}
struct pci_dev* xio_device_claim_raw(const struct xio_kmod_pci* name) {
  return claim(name, true);
}

void xio_device_unclaim(struct pci_dev* pdev) {
  device_unlock(&pdev->dev);
  pci_dev_put(pdev);
}

/*
 * Nothing outlives the driver under which it was mapped: after it the device may go to vfio, to another IOMMU domain,
 * or out of the machine. The driver is still bound and the device's lock held when the bus calls this.
 */
static int on_pci_event(struct notifier_block* block, unsigned long what, void* data) {
  struct device* dev = data;

  if (what == BUS_NOTIFY_UNBIND_DRIVER || what == BUS_NOTIFY_DEL_DEVICE) xio_objects_retire_device(to_pci_dev(dev));
  return NOTIFY_DONE;
}

static struct notifier_block watcher = {.notifier_call = on_pci_event};

int xio_device_watch(void) { return bus_register_notifier(&pci_bus_type, &watcher); }
void xio_device_unwatch(void) { bus_unregister_notifier(&pci_bus_type, &watcher); }
