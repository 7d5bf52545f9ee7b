// SPDX-License-Identifier: MIT
// Device API: all that a kernel includes. Header-only; a ctx is passed to the kernel by value.
//
//   ctx.hpp         the PE's number, how many there are, addresses of peers
//   rma.hpp         put, get, scalars, strided and tiled copies
//   staged.hpp      copies by one thread through shared memory
//   atomic.hpp      atomics
//   signal.hpp      put with signal, signals, local completion counters
//   immediate.hpp   put with immediate, and taking immediates
//   packet.hpp      small messages that carry their own flags
//   wait.hpp        waiting for words that peers change
//   sync.hpp        fence, quiet, requests, barrier, sync
//   pool.hpp        contexts of one workgroup
//   team.hpp        teams: numbers of members, sync, barrier
//   collective.hpp  alltoall(v), (f)collect, broadcast, reduce, reduce_scatter of a team
//   storage.hpp     read, write, compare, zeroes, sync
//   sdma_queue.hpp  copy engine queues without a world (xio/sdma.h)
//
// Everything public starts with xio_; names in xio::dev are not for programs, and change between versions.
#pragma once
#include "xio/device/atomic.hpp"
#include "xio/device/collective.hpp"
#include "xio/device/ctx.hpp"
#include "xio/device/immediate.hpp"
#include "xio/device/packet.hpp"
#include "xio/device/pool.hpp"
#include "xio/device/rma.hpp"
#include "xio/device/sdma_queue.hpp"
#include "xio/device/signal.hpp"
#include "xio/device/staged.hpp"
#include "xio/device/storage.hpp"
#include "xio/device/sync.hpp"
#include "xio/device/team.hpp"
#include "xio/device/wait.hpp"
