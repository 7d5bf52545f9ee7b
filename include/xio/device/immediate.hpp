// SPDX-License-Identifier: MIT
// Put with immediate: data, and behind it 32 bits that the target takes out of an inbox. A ctx has an inbox for each
// PE when it was made with xio_ctx_attr_t::immediates; all workgroups, queue pairs and pool contexts of it share them.
//
// Parameters.
//   ctx        the ctx that carries the op, and whose inbox it is
//   dst        symmetric address of where the data goes at PE `pe`
//   src        where it comes from, any memory of the device
//   bytes      size of the copy in bytes; with 0 the immediate travels alone, and dst and src may be null
//   immediate  32 bits that mean what the program wants, or where those that were taken out are stored
//   pe         the other PE's number in the world, from 0 on
//
// The immediate comes after all the data of its call, on every route, and each is handed out once. Those of one thread
// come in order if it sends them by the same ctx and waits for each, or if its route is RDMA; others come as they
// arrive. A full inbox holds its senders up until the target takes one out: a sender gives up after the world's
// timeout, its NIC (RDMA) after XIO_RDMA_RNR_RETRY tries.
//
// Forms and errors are those of rma.hpp; XIO_ERR_UNSUPPORTED from a ctx without inboxes.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/rma.hpp"
#include "xio/device/wait.hpp"

// --- put, then immediate -----------------------------------------------------------------------------

// Copies `bytes` from `src` here to `dst` at PE `pe`, then puts `immediate` into the inbox that PE holds for this one.
// Returns when `src` may be reused. `_nbi` does not wait where a NIC carries it: `src` must stay as it is until the
// request is waited for.
XIO_OP(xio_put_imm, xio_put_imm_wave, xio_put_imm_wg, xio_put_imm_nbi, xio_put_imm_nbi_wave, xio_put_imm_nbi_wg,
       (const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint32_t immediate, int pe));

// --- Taking it out -----------------------------------------------------------------------------------

// Takes the oldest immediate of PE `pe` out of the inbox. XIO_PENDING if there is none. After XIO_OK the data of its
// put is visible to the caller. Any threads of the ctx and of its pool may call; each immediate is returned to one of
// them.
XIO_DEVICE xio_status_t xio_imm_test(const xio_ctx_t& ctx, uint32_t* immediate, int pe);

// Waits for the next immediate of PE `pe` and takes it out. Returns XIO_ERR_TIMEOUT after the world's timeout, and the
// failure of a queue pair to that PE at once.
XIO_DEVICE xio_status_t xio_imm_wait(const xio_ctx_t& ctx, uint32_t* immediate, int pe);

#include "xio/device/impl/immediate.hpp"
