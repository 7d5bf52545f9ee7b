// SPDX-License-Identifier: MIT
// Storage: blocks between a drive or file, or stripes over several, and memory that is symmetric or registered.
//
// offset and bytes are multiples of the storage's block, within its size; the buffer may start at any multiple of
// 4 bytes. Longer transfers than one command can carry are split. Ops complete in any order; a read is visible to
// the caller when it is complete, a write is durable only after xio_storage_sync. Wrong arguments, a closed handle
// and writes to a read-only storage are refused: the call returns why, and the next quiet returns it once more.
// Errors of the drive (XIO_ERR_STORAGE) are returned by the op itself, by its wait, and once by a quiet.
#pragma once
#include "xio/device/ctx.hpp"
#include "xio/device/impl/storage.hpp"
#include "xio/xio.h"

// --- All calls ---------------------------------------------------------------------------------------
// xio_read             blocks of the storage from byte `offset` on into `buf`: `bytes` of them
// xio_write            `buf` into blocks of the storage
// xio_compare          XIO_ERR_STORAGE where the blocks are not what `buf` holds (code 0x285)
// xio_write_zeroes     blocks that read as zeroes from then on
// xio_storage_sync     completes everything that any ctx posted to the storage, then makes it durable;
//                      XIO_ERR_STORAGE if one of those ops or the Flush command itself failed
// xio_storage_code     of a complete request: the drive's own code of its failure (SCT << 8 | SC); 0 for none
//
// Forms are those of rma.hpp: plain, `_wave` and `_wg`, each also with `_nbi` before the scope. Blocking forms return
// the op's own status. `_nbi` forms return a request, 0 if there was nothing to do; waiting for the request of a
// refused op returns why it was refused. The buffer is the drive's until the op is complete. A transfer that is too
// long for one queue, or that crosses stripes, may wait in an `_nbi` form for its earlier parts.
//
// Errors. xio_compare and xio_write_zeroes are XIO_ERR_UNSUPPORTED where the drive has no such command (NVM Command
// Set, Identify Controller, ONCS). Errors of the drive are counted for the storage as a whole: every ctx that has
// posted to it gets each of them once, from a quiet or a sync, also those of ops that another ctx posted.
//
// XIO_OK is returned only for an op whose completion was seen. The status of an op is exact until 262144 later commands
// of its queue are complete, and its code until 16384 are, however many of them failed. After that they are exact
// unless a failure had to be forgotten that may have been this op's: then wait and test return XIO_ERR_STORAGE and the
// code is XIO_STORAGE_CODE_UNKNOWN, which means that the op failed or that its result is not known any more.

// --- xio_read ---------------------------------------------------------------------------------------

// Reads `bytes` from byte `offset` of the storage into `buf`.
XIO_DEVICE xio_status_t xio_read(const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset,
                                 size_t bytes) {
  return xio::dev::storage_op(xio::dev::thread_group::here(), ctx,
                              {xio::wire::nvme::opcode::read, buf, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_read_wave(const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset,
                                      size_t bytes) {
  return xio::dev::storage_op(xio::dev::wave_group::here(), ctx,
                              {xio::wire::nvme::opcode::read, buf, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_read_wg(const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset,
                                    size_t bytes) {
  return xio::dev::storage_op(xio::dev::workgroup_group::here(), ctx,
                              {xio::wire::nvme::opcode::read, buf, storage, offset, bytes});
}
// The same without waiting: `buf` is the drive's until the request is waited for.
XIO_DEVICE xio_req_t xio_read_nbi(const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset,
                                  size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::thread_group::here(), ctx,
                                  {xio::wire::nvme::opcode::read, buf, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_read_nbi_wave(const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset,
                                       size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::wave_group::here(), ctx,
                                  {xio::wire::nvme::opcode::read, buf, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_read_nbi_wg(const xio_ctx_t& ctx, void* buf, xio_storage_t storage, uint64_t offset,
                                     size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::workgroup_group::here(), ctx,
                                  {xio::wire::nvme::opcode::read, buf, storage, offset, bytes});
}

// --- xio_write --------------------------------------------------------------------------------------

// Writes `bytes` of `buf` to the storage from byte `offset` on; durable after xio_storage_sync.
XIO_DEVICE xio_status_t xio_write(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                  size_t bytes) {
  return xio::dev::storage_op(xio::dev::thread_group::here(), ctx,
                              {xio::wire::nvme::opcode::write, buf, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_write_wave(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                       size_t bytes) {
  return xio::dev::storage_op(xio::dev::wave_group::here(), ctx,
                              {xio::wire::nvme::opcode::write, buf, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_write_wg(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                     size_t bytes) {
  return xio::dev::storage_op(xio::dev::workgroup_group::here(), ctx,
                              {xio::wire::nvme::opcode::write, buf, storage, offset, bytes});
}
// The same without waiting: `buf` is the drive's until the request is waited for.
XIO_DEVICE xio_req_t xio_write_nbi(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                   size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::thread_group::here(), ctx,
                                  {xio::wire::nvme::opcode::write, buf, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_write_nbi_wave(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                        size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::wave_group::here(), ctx,
                                  {xio::wire::nvme::opcode::write, buf, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_write_nbi_wg(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                      size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::workgroup_group::here(), ctx,
                                  {xio::wire::nvme::opcode::write, buf, storage, offset, bytes});
}

// --- xio_compare ------------------------------------------------------------------------------------

// Compares blocks with `buf`: XIO_ERR_STORAGE, code 0x285, where they differ.
XIO_DEVICE xio_status_t xio_compare(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                    size_t bytes) {
  return xio::dev::storage_op(xio::dev::thread_group::here(), ctx,
                              {xio::wire::nvme::opcode::compare, buf, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_compare_wave(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                         size_t bytes) {
  return xio::dev::storage_op(xio::dev::wave_group::here(), ctx,
                              {xio::wire::nvme::opcode::compare, buf, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_compare_wg(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                       size_t bytes) {
  return xio::dev::storage_op(xio::dev::workgroup_group::here(), ctx,
                              {xio::wire::nvme::opcode::compare, buf, storage, offset, bytes});
}
// The same without waiting: `buf` is the drive's until the request is waited for.
XIO_DEVICE xio_req_t xio_compare_nbi(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                     size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::thread_group::here(), ctx,
                                  {xio::wire::nvme::opcode::compare, buf, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_compare_nbi_wave(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                          size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::wave_group::here(), ctx,
                                  {xio::wire::nvme::opcode::compare, buf, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_compare_nbi_wg(const xio_ctx_t& ctx, const void* buf, xio_storage_t storage, uint64_t offset,
                                        size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::workgroup_group::here(), ctx,
                                  {xio::wire::nvme::opcode::compare, buf, storage, offset, bytes});
}

// --- xio_write_zeroes, xio_storage_sync -------------------------------------------------------------

// Makes blocks read as zeroes.
XIO_DEVICE xio_status_t xio_write_zeroes(const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset, size_t bytes) {
  return xio::dev::storage_op(xio::dev::thread_group::here(), ctx,
                              {xio::wire::nvme::opcode::write_zeroes, nullptr, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_write_zeroes_wave(const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset,
                                              size_t bytes) {
  return xio::dev::storage_op(xio::dev::wave_group::here(), ctx,
                              {xio::wire::nvme::opcode::write_zeroes, nullptr, storage, offset, bytes});
}
XIO_DEVICE xio_status_t xio_write_zeroes_wg(const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset,
                                            size_t bytes) {
  return xio::dev::storage_op(xio::dev::workgroup_group::here(), ctx,
                              {xio::wire::nvme::opcode::write_zeroes, nullptr, storage, offset, bytes});
}
// The same without waiting.
XIO_DEVICE xio_req_t xio_write_zeroes_nbi(const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset, size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::thread_group::here(), ctx,
                                  {xio::wire::nvme::opcode::write_zeroes, nullptr, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_write_zeroes_nbi_wave(const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset,
                                               size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::wave_group::here(), ctx,
                                  {xio::wire::nvme::opcode::write_zeroes, nullptr, storage, offset, bytes});
}
XIO_DEVICE xio_req_t xio_write_zeroes_nbi_wg(const xio_ctx_t& ctx, xio_storage_t storage, uint64_t offset,
                                             size_t bytes) {
  return xio::dev::storage_op_nbi(xio::dev::workgroup_group::here(), ctx,
                                  {xio::wire::nvme::opcode::write_zeroes, nullptr, storage, offset, bytes});
}

// Completes every op that any ctx posted to the storage, then makes what was written durable.
XIO_DEVICE xio_status_t xio_storage_sync(const xio_ctx_t& ctx, xio_storage_t storage) {
  return xio::dev::storage_sync_op(xio::dev::thread_group::here(), ctx, storage);
}
XIO_DEVICE xio_status_t xio_storage_sync_wave(const xio_ctx_t& ctx, xio_storage_t storage) {
  return xio::dev::storage_sync_op(xio::dev::wave_group::here(), ctx, storage);
}
XIO_DEVICE xio_status_t xio_storage_sync_wg(const xio_ctx_t& ctx, xio_storage_t storage) {
  return xio::dev::storage_sync_op(xio::dev::workgroup_group::here(), ctx, storage);
}

// The drive's own code of what went wrong with a complete request (SCT << 8 | SC); 0 if nothing did, or for a null ctx.
XIO_DEVICE uint32_t xio_storage_code(const xio_ctx_t& ctx, xio_req_t request) {
  return ctx.view == nullptr ? 0 : xio::dev::storage_code(xio::dev::ctx_of(ctx), request);
}
