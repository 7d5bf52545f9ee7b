// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Numbers are those of the NVM Express Base Specification 2.0: registers 3.1.3, doorbells 3.1.3.10, commands 5 and
 * figure 84. */
#include "controller.h"

#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "xio.h"

#define REG_CAP 0x00
#define REG_INTMS 0x0c
#define REG_CC 0x14
#define REG_CSTS 0x1c
#define REG_AQA 0x24
#define REG_ASQ 0x28
#define REG_ACQ 0x30
#define REG_DOORBELLS 0x1000
#define CC_EN 0x1u
#define CC_SHN_NORMAL (1u << 14)
#define CC_QUEUES ((6u << 16) | (4u << 20)) /* entries of 64 and 16 octets */
#define CSTS_RDY 0x1u
#define CSTS_CFS 0x2u
#define CSTS_SHST 0xcu
#define CSTS_SHST_DONE 0x8u
#define CSTS_GONE 0xffffffffu /* what a device that is not there reads as */

#define ADMIN_ENTRIES 16u
#define ADMIN_SECONDS 30
#define MAX_QUEUES 64u
#define CC_PAGE 4096u /* CC.MPS 0 */

struct command {
  __le32 dw0, nsid;
  __le64 reserved, metadata, prp1, prp2;
  __le32 dw10, dw11, dw12, dw13, dw14, dw15;
};
static_assert(sizeof(struct command) == 64);

struct completion_entry {
  __le32 dw0, dw1, sq, status; /* status: command identifier 15:0, phase 16, status field 31:17 */
};
static_assert(sizeof(struct completion_entry) == 16);

struct xio_controller {
  struct pci_dev* pdev;
  struct mutex lock; /* of all below but what start() alone sets */
  u8 __iomem* registers;
  u64 registers_bytes;
  u64 cap;
  struct command* sq;
  struct completion_entry* cq;
  void* page;
  dma_addr_t sq_address, cq_address, page_address;
  u32 sq_tail, cq_head, phase;
  u16 cid;
  bool posted;         /* a command whose completion nobody has taken */
  unsigned long limit; /* when it is late */
  unsigned int queues; /* I/O queue pairs it has granted: 1 .. queues */
  DECLARE_BITMAP(taken, MAX_QUEUES + 1);
  bool dead;
};

u64 xio_controller_cap(const struct xio_controller* c) { return c->cap; }
static u32 stride(const struct xio_controller* c) { return 4u << ((c->cap >> 32) & 0xf); }
static u32 max_entries(const struct xio_controller* c) { return (u32)(c->cap & 0xffff) + 1; }

static u32 doorbell(const struct xio_controller* c, unsigned int index) { return REG_DOORBELLS + index * stride(c); }

u64 xio_controller_sq_doorbell(const struct xio_controller* c, unsigned int qid) {
  return pci_resource_start(c->pdev, 0) + doorbell(c, 2 * qid);
}

u64 xio_controller_cq_doorbell(const struct xio_controller* c, unsigned int qid) {
  return pci_resource_start(c->pdev, 0) + doorbell(c, 2 * qid + 1);
}

/* CAP.TO counts half seconds. */
static unsigned long ready_limit(const struct xio_controller* c) {
  return jiffies + ((((c->cap >> 24) & 0xff) + 1) * HZ) / 2 + HZ;
}

static int wait_status(struct xio_controller* c, u32 mask, u32 value, unsigned long limit) {
  for (;;) {
    /* The time first: a processor that was away for long looks once more. */
    const bool late = time_after(jiffies, limit);
    const u32 csts = readl(c->registers + REG_CSTS);

    if (csts == CSTS_GONE) return -ENODEV;
    if ((csts & mask) == value) return 0;
    if (late) return -ETIME;
    usleep_range(200, 1000);
  }
}

/* Even if the controller cannot be stopped, or reads as all ones because its registers are switched off, it may go on
 * with DMA. So bus mastering is cleared at the end in every case: the bridge in front then keeps it from memory. */
static void stop(struct xio_controller* c, bool orderly) {
  c->dead = true;
  if (readl(c->registers + REG_CSTS) != CSTS_GONE) {
    const u32 cc = readl(c->registers + REG_CC);

    if (orderly && (cc & CC_EN)) {
      writel((cc & ~CC_SHN_NORMAL) | CC_SHN_NORMAL, c->registers + REG_CC);
      if (wait_status(c, CSTS_SHST, CSTS_SHST_DONE, jiffies + 5 * HZ))
        pci_warn(c->pdev, "xio: the controller did not shut down in 5 s\n");
    }
    writel(cc & ~(CC_EN | CC_SHN_NORMAL), c->registers + REG_CC);
    if (wait_status(c, CSTS_RDY, 0, ready_limit(c))) pci_err(c->pdev, "xio: the controller cannot be disabled\n");
  }
  pci_clear_master(c->pdev);
}

static void die(struct xio_controller* c, const char* what) {
  if (c->dead) return;
  pci_err(c->pdev, "xio: %s; the controller is disabled until it is bound again\n", what);
  stop(c, false);
}

/*
 * Takes the completion of the command that is posted: -EIO for a status that is not success, `result` is dword 0 of it.
 * -EINTR, where a signal may end the wait: the command stays posted, and the next call takes its completion first.
 */
static int take(struct xio_controller* c, u32* result, bool interruptible) {
  struct completion_entry* entry = &c->cq[c->cq_head];
  u32 status;

  for (;;) {
    const bool late = time_after(jiffies, c->limit);

    status = le32_to_cpu(READ_ONCE(entry->status));
    if (((status >> 16) & 1) == c->phase) break;
    /* Not ready: it was reset, or its registers are switched off. */
    if (late || (readl(c->registers + REG_CSTS) & (CSTS_RDY | CSTS_CFS)) != CSTS_RDY) {
      die(c, late ? "an admin command did not complete" : "the controller has failed, was reset, or is gone");
      return -EIO;
    }
    if (interruptible && signal_pending(current)) return -EINTR;
    usleep_range(50, 200);
  }
  dma_rmb();
  c->posted = false;
  if (result) *result = le32_to_cpu(entry->dw0);
  c->cq_head = (c->cq_head + 1) % ADMIN_ENTRIES;
  if (c->cq_head == 0) c->phase ^= 1;
  writel(c->cq_head, c->registers + doorbell(c, 1));
  if ((status & 0xffff) != c->cid) {
    die(c, "the completion of another admin command came");
    return -EIO;
  }
  return status >> 17 ? -EIO : 0;
}

static void post(struct xio_controller* c, struct command* command) {
  c->cid++;
  command->dw0 |= cpu_to_le32((u32)c->cid << 16);
  c->sq[c->sq_tail] = *command;
  c->sq_tail = (c->sq_tail + 1) % ADMIN_ENTRIES;
  c->posted = true;
  c->limit = jiffies + ADMIN_SECONDS * HZ;
  /* writel orders the entry before the doorbell. */
  writel(c->sq_tail, c->registers + doorbell(c, 0));
}

/* One command at a time; the lock is held, or nobody else has the controller yet. Only one that changes nothing may be
 * left behind. */
static int admin(struct xio_controller* c, struct command* command, u32* result, bool interruptible) {
  if (c->dead) return -EIO;
  if (c->posted && take(c, NULL, interruptible) == -EINTR) return -EINTR;
  if (c->dead) return -EIO;
  post(c, command);
  return take(c, result, interruptible);
}

int xio_controller_identify(struct xio_controller* c, u32 cns, u32 nsid, void* data) {
  struct command command = {
      .dw0 = cpu_to_le32(0x06),
      .nsid = cpu_to_le32(nsid),
      .prp1 = cpu_to_le64(c->page_address),
      .dw10 = cpu_to_le32(cns),
  };
  int status = mutex_lock_interruptible(&c->lock);

  if (status) return status;
  /* One that was left behind may still write there. */
  if (c->posted && !c->dead) status = take(c, NULL, true);
  if (status != -EINTR) {
    memset(c->page, 0, CC_PAGE);
    status = admin(c, &command, NULL, true);
  }
  if (!status) memcpy(data, c->page, CC_PAGE);
  mutex_unlock(&c->lock);
  return status;
}

/* ---- queues ---------------------------------------------------------------------------------------------------- */

/* Number of Queues, feature 07h. */
static int request_queues(struct xio_controller* c) {
  struct command command = {
      .dw0 = cpu_to_le32(0x09),
      .dw10 = cpu_to_le32(0x07),
      .dw11 = cpu_to_le32((MAX_QUEUES - 1) | (MAX_QUEUES - 1) << 16),
  };
  u32 granted;
  int status = admin(c, &command, &granted, false);

  if (status) return status;
  c->queues = min3((granted & 0xffff) + 1, (granted >> 16) + 1, MAX_QUEUES);
  /* Those whose doorbells the register window does not hold are not there. */
  while (c->queues && doorbell(c, 2 * c->queues + 1) + 4 > c->registers_bytes) c->queues--;
  return c->queues ? 0 : -ENODEV;
}

static int delete_queue(struct xio_controller* c, u32 opcode, unsigned int qid) {
  struct command command = {.dw0 = cpu_to_le32(opcode), .dw10 = cpu_to_le32(qid)};

  return admin(c, &command, NULL, false);
}

/* No signal ends the wait for these commands: a queue that was only half made would have no owner to delete it. */
static int create(struct xio_controller* c, u64 sq, u32 sq_entries, u64 cq, u32 cq_entries) {
  const unsigned int qid = find_next_zero_bit(c->taken, c->queues + 1, 1);
  struct command create_cq = {
      .dw0 = cpu_to_le32(0x05),
      .prp1 = cpu_to_le64(cq),
      .dw10 = cpu_to_le32(qid | (cq_entries - 1) << 16),
      .dw11 = cpu_to_le32(1), /* contiguous, without interrupts */
  };
  struct command create_sq = {
      .dw0 = cpu_to_le32(0x01),
      .prp1 = cpu_to_le64(sq),
      .dw10 = cpu_to_le32(qid | (sq_entries - 1) << 16),
      .dw11 = cpu_to_le32(1 | qid << 16),
  };
  int status;

  if (c->dead) return -EIO;
  if (sq_entries < 2 || cq_entries < 2 || sq_entries > max_entries(c) || cq_entries > max_entries(c)) return -EINVAL;
  if (qid > c->queues) return -ENOSPC;
  status = admin(c, &create_cq, NULL, false);
  if (status) return status;
  status = admin(c, &create_sq, NULL, false);
  if (status) {
    if (delete_queue(c, 0x04, qid)) die(c, "a completion queue cannot be deleted");
    return status;
  }
  __set_bit(qid, c->taken);
  return (int)qid;
}

int xio_controller_create(struct xio_controller* c, u64 sq, u32 sq_entries, u64 cq, u32 cq_entries) {
  int status = mutex_lock_interruptible(&c->lock);

  if (status) return status;
  status = create(c, sq, sq_entries, cq, cq_entries);
  mutex_unlock(&c->lock);
  return status;
}

void xio_controller_delete(struct xio_controller* c, unsigned int qid) {
  mutex_lock(&c->lock);
  /* A controller that refuses would go on writing. */
  if (!c->dead && (delete_queue(c, 0x00, qid) || delete_queue(c, 0x04, qid))) die(c, "a queue cannot be deleted");
  __clear_bit(qid, c->taken);
  mutex_unlock(&c->lock);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static int start(struct xio_controller* c) {
  int status;

  c->cap = readq(c->registers + REG_CAP);
  if (c->cap == ~0ull) return -ENODEV;
  /* The NVM command set, pages of 4 KiB. */
  if (!(c->cap >> 37 & 1) || (c->cap >> 48 & 0xf)) return -EOPNOTSUPP;
  writel(0, c->registers + REG_CC);
  status = wait_status(c, CSTS_RDY, 0, ready_limit(c));
  if (status) return status;
  memset(c->sq, 0, ADMIN_ENTRIES * sizeof(*c->sq));
  memset(c->cq, 0, ADMIN_ENTRIES * sizeof(*c->cq));
  c->sq_tail = c->cq_head = 0;
  c->phase = 1;
  c->posted = false;
  writel(~0u, c->registers + REG_INTMS);
  writel((ADMIN_ENTRIES - 1) | (ADMIN_ENTRIES - 1) << 16, c->registers + REG_AQA);
  lo_hi_writeq(c->sq_address, c->registers + REG_ASQ);
  lo_hi_writeq(c->cq_address, c->registers + REG_ACQ);
  writel(CC_EN | CC_QUEUES, c->registers + REG_CC);
  status = wait_status(c, CSTS_RDY | CSTS_CFS, CSTS_RDY, ready_limit(c));
  if (status) return status;
  bitmap_zero(c->taken, MAX_QUEUES + 1);
  c->dead = false;
  return request_queues(c);
}

static void free_memory(struct xio_controller* c) {
  struct device* dev = &c->pdev->dev;

  if (c->sq) dma_free_coherent(dev, ADMIN_ENTRIES * sizeof(*c->sq), c->sq, c->sq_address);
  if (c->cq) dma_free_coherent(dev, ADMIN_ENTRIES * sizeof(*c->cq), c->cq, c->cq_address);
  if (c->page) dma_free_coherent(dev, CC_PAGE, c->page, c->page_address);
}

/* A coherent allocation begins at a page. */
static int allocate_memory(struct xio_controller* c) {
  struct device* dev = &c->pdev->dev;

  c->sq = dma_alloc_coherent(dev, ADMIN_ENTRIES * sizeof(*c->sq), &c->sq_address, GFP_KERNEL);
  c->cq = dma_alloc_coherent(dev, ADMIN_ENTRIES * sizeof(*c->cq), &c->cq_address, GFP_KERNEL);
  c->page = dma_alloc_coherent(dev, CC_PAGE, &c->page_address, GFP_KERNEL);
  return c->sq && c->cq && c->page ? 0 : -ENOMEM;
}

static int probe(struct pci_dev* pdev, const struct pci_device_id* id) {
  struct xio_controller* c;
  int status;

  if (pdev->class != PCI_CLASS_STORAGE_EXPRESS) {
    pci_err(pdev, "xio: this is no NVMe controller\n");
    return -ENODEV;
  }
  c = kzalloc(sizeof(*c), GFP_KERNEL);
  if (!c) return -ENOMEM;
  c->pdev = pdev;
  mutex_init(&c->lock);
  c->dead = true;
  status = pci_enable_device_mem(pdev);
  if (status) goto free;
  status = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
  if (status) goto disable;
  status = pci_request_mem_regions(pdev, "xio");
  if (status) goto disable;
  c->registers_bytes = pci_resource_len(pdev, 0);
  c->registers = c->registers_bytes > REG_DOORBELLS ? pci_ioremap_bar(pdev, 0) : NULL;
  if (!c->registers) {
    status = -ENODEV;
    goto regions;
  }
  status = allocate_memory(c);
  if (status) goto memory;
  pci_set_master(pdev);
  status = start(c);
  if (status) {
    pci_err(pdev, "xio: the controller does not come up (%d)\n", status);
    stop(c, false);
    goto memory;
  }
  pci_set_drvdata(pdev, c);
  pci_info(pdev, "xio: %u I/O queue pairs to give\n", c->queues);
  return 0;
memory:
  free_memory(c);
  iounmap(c->registers);
regions:
  pci_release_mem_regions(pdev);
disable:
  pci_disable_device(pdev);
free:
  kfree(c);
  return status;
}

/* Objects that were given out have been retired before, when the bus reported that the driver goes. */
static void remove(struct pci_dev* pdev) {
  struct xio_controller* c = pci_get_drvdata(pdev);

  stop(c, !c->dead);
  free_memory(c);
  iounmap(c->registers);
  pci_release_mem_regions(pdev);
  pci_disable_device(pdev);
  kfree(c);
}

/* Before a sleep or a reset: queues do not outlive it. */
static void quiesce(struct pci_dev* pdev) {
  struct xio_controller* c = pci_get_drvdata(pdev);

  xio_objects_retire_device(pdev);
  mutex_lock(&c->lock);
  stop(c, !c->dead);
  mutex_unlock(&c->lock);
}

static void revive(struct pci_dev* pdev) {
  struct xio_controller* c = pci_get_drvdata(pdev);
  int status;

  mutex_lock(&c->lock);
  pci_set_master(pdev);
  status = start(c);
  if (status) {
    pci_err(pdev, "xio: the controller does not come up again (%d)\n", status);
    stop(c, false);
  }
  mutex_unlock(&c->lock);
}

static int suspend(struct device* dev) {
  quiesce(to_pci_dev(dev));
  return 0;
}

static int resume(struct device* dev) {
  revive(to_pci_dev(dev));
  return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(power, suspend, resume);

static const struct pci_error_handlers errors = {
    .reset_prepare = quiesce,
    .reset_done = revive,
};

/* No table: no controller becomes ours but by its driver_override. */
static struct pci_driver driver = {
    .name = "xio",
    .probe = probe,
    .remove = remove,
    .shutdown = quiesce,
    .err_handler = &errors,
    .driver.pm = pm_sleep_ptr(&power),
};

int xio_controllers_register(void) { return pci_register_driver(&driver); }
void xio_controllers_unregister(void) { pci_unregister_driver(&driver); }

struct xio_controller* xio_controller_of(struct pci_dev* pdev) {
  return pdev->dev.driver == &driver.driver ? pci_get_drvdata(pdev) : NULL;
}
