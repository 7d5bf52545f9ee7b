// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* PCI devices: who may use one, and the news that one goes away. */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/notifier.h>

#include "xio.h"

/* Answers whether what the DMA API hands out are addresses of an IOMMU; -EBUSY where the IOMMU is not the DMA API's at
 * all. */
static int translation(struct pci_dev* pdev) {
  struct iommu_domain* domain = iommu_get_domain_for_dev(&pdev->dev);

  if (!domain || domain->type == IOMMU_DOMAIN_IDENTITY) return 0;
  return iommu_is_dma_domain(domain) ? 1 : -EBUSY;
}

bool xio_device_translated(struct pci_dev* pdev) { return translation(pdev) == 1; }

bool xio_device_sees_ram(struct pci_dev* pdev, dma_addr_t address) {
  struct iommu_domain* domain = iommu_get_domain_for_dev(&pdev->dev);
  phys_addr_t where = xio_device_translated(pdev) ? iommu_iova_to_phys(domain, address) : address;

  return region_intersects(where & PAGE_MASK, PAGE_SIZE, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) != REGION_DISJOINT;
}

static int check(struct pci_dev* pdev, bool raw) {
  struct pci_driver* driver;
  int translated;

  if (!pdev->dev.driver) return -ENODEV;
  driver = to_pci_driver(pdev->dev.driver);
  if (driver->driver_managed_dma) return -EBUSY;
  translated = translation(pdev);
  if (translated < 0) return translated;
  if ((raw || !translated) && !capable(CAP_SYS_RAWIO)) return -EPERM;
  /* A limit on what can be mapped at once is the size of a bounce buffer: writes would reach the memory late or never.
   */
  if (dma_max_mapping_size(&pdev->dev) != SIZE_MAX) return -EOPNOTSUPP;
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
 * or out of the machine. The driver is still bound and the device's lock held when this is told.
 */
static int told(struct notifier_block* block, unsigned long what, void* data) {
  struct device* dev = data;

  if (what == BUS_NOTIFY_UNBIND_DRIVER || what == BUS_NOTIFY_DEL_DEVICE) {
    mutex_lock(&xio_lock);
    xio_objects_retire_device(to_pci_dev(dev));
    mutex_unlock(&xio_lock);
  }
  return NOTIFY_DONE;
}

static struct notifier_block watcher = {.notifier_call = told};

int xio_device_watch(void) { return bus_register_notifier(&pci_bus_type, &watcher); }
void xio_device_unwatch(void) { bus_unregister_notifier(&pci_bus_type, &watcher); }
