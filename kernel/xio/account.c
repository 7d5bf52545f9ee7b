// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* What a user holds pinned, counted as io_uring, XDP and iommufd count it: per user, against RLIMIT_MEMLOCK. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>

#include "xio.h"

int xio_charge(struct xio_charge* charge, u64 bytes) {
  const unsigned long pages = (unsigned long)(DIV_ROUND_UP_ULL(bytes, PAGE_SIZE));
  const unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
  struct user_struct* user = get_uid(current_user());
  const bool limited = !capable(CAP_IPC_LOCK);
  unsigned long now = (unsigned long)atomic_long_read(&user->locked_vm);
  unsigned long wanted;

  do {
    wanted = now + pages;
    if (wanted < now || (limited && wanted > limit)) {
      free_uid(user);
      return -ENOMEM;
    }
  } while (!atomic_long_try_cmpxchg(&user->locked_vm, (long*)&now, (long)wanted));
  charge->user = user;
  charge->pages = pages;
  return 0;
}

void xio_uncharge(struct xio_charge* charge) {
  if (!charge->user) return;
  atomic_long_sub((long)charge->pages, &charge->user->locked_vm);
  free_uid(charge->user);
  charge->user = NULL;
}
