/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* NVMe controllers that the administrator has bound to this module: brought up from reset, their admin queue kept here,
 * their I/O queues handed out. A controller has a lock of its own over its admin queue, taken here. */
#ifndef XIO_CONTROLLER_H
#define XIO_CONTROLLER_H

#include <linux/types.h>

struct pci_dev;
struct xio_controller;

int xio_controllers_register(void);
void xio_controllers_unregister(void);

/* That of a device whose lock is held, or whose driver cannot go; NULL: another driver has it. */
struct xio_controller* xio_controller_of(struct pci_dev* pdev);

u64 xio_controller_cap(const struct xio_controller* controller);
/* Where on the processor's bus the doorbells of queue pair qid lie. */
u64 xio_controller_sq_doorbell(const struct xio_controller* controller, unsigned int qid);
u64 xio_controller_cq_doorbell(const struct xio_controller* controller, unsigned int qid);
/* Returns the identifier, or an error. Entries: counted, not less one. -EINTR: a signal came before anything was done.
 */
int xio_controller_create(struct xio_controller* controller, u64 sq, u32 sq_entries, u64 cq, u32 cq_entries);
/* When it returns, the controller does not touch the queues or the buffers of their commands any more, come what may.
 */
void xio_controller_delete(struct xio_controller* controller, unsigned int qid);
/* `data`: 4096 octets. -EINTR: a signal came. */
int xio_controller_identify(struct xio_controller* controller, u32 cns, u32 nsid, void* data);

#endif
