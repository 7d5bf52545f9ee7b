// SPDX-License-Identifier: MIT
// Storage: blocks between a drive or file, or stripes over several, and memory that is symmetric or registered.
//
// Parameters.
//   ctx      the ctx that carries the op
//   buf      memory that is symmetric or registered (xio_mem_register), for drives from any multiple of 4 bytes on, for
//            files from any byte on; it is the drive's until the op is complete
//   storage  a handle of xio_storage_open
//   offset   first byte in the storage; of a drive a multiple of its block, of a file any
//   bytes    size in bytes, likewise; the transfer ends within the storage
//   request  what an `_nbi` form returned
//
// Transfers that are longer than one command can carry are split. Ops complete in any order; a read is visible to the
// caller when it is complete, a write is durable only after xio_storage_sync.
//
// Forms are those of rma.hpp: plain, `_wave` and `_wg`, each also with `_nbi` before the scope. Blocking forms return
// the op's own status. `_nbi` forms return a request, 0 if there was nothing to do; waiting for the request of a
// refused op returns why it was refused. A transfer that is too long for one queue, or that crosses stripes, may wait
// in an `_nbi` form for its earlier parts.
//
// A write changes its own bytes and no others, and never makes a file longer. Two writes of different bytes of one
// block of a file, by any threads, kernels and PEs of one node, leave what both have written.
//
// Errors. XIO_ERR_STATE (null ctx, closed handle), XIO_ERR_ARG (offset or size of a drive's op is no multiple of the
// block, the end lies beyond the storage, buf is null or, for a drive, not 4-byte aligned, a write to a read-only
// storage) and XIO_ERR_NOT_REGISTERED (buf): nothing is read or written, the call returns it, and the next quiet once
// more. Errors of the drive (XIO_ERR_STORAGE) are returned by the op itself, by its wait, and once by a quiet: they are
// counted for the storage as a whole, and every ctx that has posted to it gets each of them once, from a quiet or a
// sync, also those of ops that another ctx posted. xio_compare and xio_write_zeroes are XIO_ERR_UNSUPPORTED where the
// drive has no such command (NVM Command Set, Identify Controller, ONCS).
//
// XIO_OK is returned only for an op whose completion was seen. The status of an op is exact until 262144 later commands
// of its queue are complete, and its code until 16384 are, however many of them failed. After that they are exact
// unless a failure had to be forgotten that may have been this op's: then wait and test return XIO_ERR_STORAGE and the
// code is XIO_STORAGE_CODE_UNKNOWN, which means that the op failed or that its result is not known any more.
#pragma once
#include "xio/device/ctx.hpp"
#include "xio/device/impl/forms.hpp"

// --- Bytes -------------------------------------------------------------------------------------------

// Reads `bytes` from byte `offset` of the storage into `buf`.
XIO_OP(xio_read, xio_read_wave, xio_read_wg, xio_read_nbi, xio_read_nbi_wave, xio_read_nbi_wg,
       (const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset, size_t bytes));

// Writes `bytes` of `buf` to the storage from byte `offset` on; durable after xio_storage_sync.
XIO_OP(xio_write, xio_write_wave, xio_write_wg, xio_write_nbi, xio_write_nbi_wave, xio_write_nbi_wg,
       (const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset, size_t bytes));

// Compares bytes with `buf`: XIO_ERR_STORAGE, code 0x285, where they differ.
XIO_OP(xio_compare, xio_compare_wave, xio_compare_wg, xio_compare_nbi, xio_compare_nbi_wave, xio_compare_nbi_wg,
       (const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset, size_t bytes));

// Makes bytes read as zeroes.
XIO_OP(xio_write_zeroes, xio_write_zeroes_wave, xio_write_zeroes_wg, xio_write_zeroes_nbi, xio_write_zeroes_nbi_wave,
       xio_write_zeroes_nbi_wg, (const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset, size_t bytes));

// --- The storage -------------------------------------------------------------------------------------

// Completes every op that any ctx posted to the storage, then makes what was written durable. XIO_ERR_STORAGE if one of
// those ops or the Flush command itself failed.
XIO_FORMS(xio_status_t, xio_storage_sync, xio_storage_sync_wave, xio_storage_sync_wg,
          (const xio_ctx_t& ctx, xio_storage_t storage));

// The drive's own code of what went wrong with a complete request (SCT << 8 | SC); 0 if nothing did, or for a null ctx.
XIO_DEVICE uint32_t xio_storage_code(const xio_ctx_t& ctx, xio_req_t request);

#include "xio/device/impl/storage.hpp"
