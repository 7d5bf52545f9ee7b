// SPDX-License-Identifier: MIT
// Packets: messages of up to 64 bytes that need no signal, because every word carries its own flag. A put_signal costs
// the sender a wait between data and signal; a packet costs one way of the link.
//
// Parameters.
//   ctx     the ctx that carries the op
//   dst     of a put the packet memory at PE `pe`, a symmetric address; else where the data is stored here
//   src     the data, any memory of the device
//   packet  the packet memory of this PE
//   bytes   size of the data in bytes, a multiple of 4 from 4 to 64
//   flag    any number that the packet memory does not hold in its high halves yet, such as the message's number
//   pe      the target's number in the world, from 0 on
//
// A packet of n bytes takes 2 n bytes of symmetric memory, 8-byte aligned: words of 8 bytes, data in the low half, the
// flag in the high half; memory that xio_calloc gave holds 0. The local side is 4-byte aligned. Another size, 0 among
// them, or alignment is XIO_ERR_ARG.
//
// Order. On every route a word arrives in one piece; words arrive in any order, and packets are unordered with other
// ops. Thread scope. Errors are those of rma.hpp and wait.hpp.
#pragma once
#include "xio/device/impl/forms.hpp"
#include "xio/device/rma.hpp"
#include "xio/device/wait.hpp"

// Sends `bytes` from `src` as a packet to the packet memory `dst` of PE `pe`. `src` may be reused on return.
XIO_DEVICE xio_status_t xio_put_packet(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint32_t flag,
                                       int pe);

// Waits until all words of the packet memory carry `flag`, and copies the `bytes` they carry to `dst`. It says nothing
// about other ops of the sender.
XIO_DEVICE xio_status_t xio_wait_packet(const xio_ctx_t& ctx, void* dst, const void* packet, size_t bytes,
                                        uint32_t flag);

// The same without waiting: XIO_PENDING if the packet is not complete yet, and `dst` is as it was.
XIO_DEVICE xio_status_t xio_test_packet(const xio_ctx_t& ctx, void* dst, const void* packet, size_t bytes,
                                        uint32_t flag);

#include "xio/device/impl/packet.hpp"
