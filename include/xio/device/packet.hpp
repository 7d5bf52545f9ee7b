// SPDX-License-Identifier: MIT
// Packets: messages of up to 64 bytes that need no signal, because every word carries its own flag. A put_signal costs
// the sender a wait between data and signal; a packet costs one way of the link.
//
// A packet of n bytes takes 2 n bytes of symmetric memory, 8-byte aligned: words of 8 bytes, data in the low half, the
// flag in the high half. `flag` is any number that this memory does not hold in its high halves yet, such as the number
// of the message; memory that xio_calloc gave holds 0. n is a multiple of 4, at most 64, and the local side is 4-byte
// aligned: else XIO_ERR_ARG.
//
// Order. On every route a word arrives in one piece; words arrive in any order, and packets are unordered with other
// ops. Thread scope. Errors are those of rma.hpp and wait.hpp.
#pragma once
#include "xio/device/impl/packet.hpp"
#include "xio/device/rma.hpp"
#include "xio/device/wait.hpp"

// Sends `bytes` from `src` as a packet to the packet memory `dst` of PE `pe`. `src` may be reused on return.
XIO_DEVICE xio_status_t xio_put_packet(const xio_ctx_t& ctx, void* dst, const void* src, size_t bytes, uint32_t flag,
                                       int pe) {
  return xio::dev::put_packet(ctx, dst, src, bytes, flag, pe);
}

// Waits until all words of the packet memory carry `flag`, and copies the `bytes` they carry to `dst`. It says nothing
// about other ops of the sender.
XIO_DEVICE xio_status_t xio_wait_packet(const xio_ctx_t& ctx, void* dst, const void* packet, size_t bytes,
                                        uint32_t flag) {
  return xio::dev::poll_packet<xio::dev::packet_stay>(ctx, dst, packet, bytes, flag);
}

// The same without waiting: XIO_PENDING if the packet is not complete yet, and `dst` is as it was.
XIO_DEVICE xio_status_t xio_test_packet(const xio_ctx_t& ctx, void* dst, const void* packet, size_t bytes,
                                        uint32_t flag) {
  return xio::dev::poll_packet<xio::dev::packet_poll>(ctx, dst, packet, bytes, flag);
}
