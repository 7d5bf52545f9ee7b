// SPDX-License-Identifier: MIT
// The first words between PEs: may they be one world? Every PE judges the same list, so all come to the same error.
#pragma once
#include "base/options.hpp"
#include "gpu/gpu.hpp"

namespace xio {

// A fixed layout: it is read before anything else is known of the sender.
struct hello {
  std::uint64_t magic;
  std::uint32_t version;  // of this layout, of agreement.cpp's and of what transports exchange
  std::uint32_t pid;
  std::uint64_t heap_bytes, ticket_start;
  std::uint32_t survives;     // XIO_SURVIVE
  std::uint32_t incarnation;  // counts the processes that have had this PE's number in the world
  std::uint64_t
      pid_space;  // equal where kernel and PID namespace are the same, so that `pid` names a process; 0: unknown
  char platform[16], route[16], heap_kind[16];
  std::int64_t clock;  // of its machine when it left the first barrier, ns
  char kernel[40];     // its boot id, or "" where XIO_MACHINE says what a machine is
  char machine[176];
};
static_assert(sizeof(hello) == 320);

constexpr std::uint64_t k_hello_magic = 0x58494f68656c6c6f;  // "XIOhello"
constexpr std::uint32_t k_hello_version = 11;

// Every process is the first of its number: nobody joins a world that is there.
constexpr std::uint32_t k_incarnation = 0;

hello make_hello(const options& o);

// Throws naming the PE and both values where something differs that has to be equal.
void check_hellos(const std::vector<hello>& all);

// The second exchange, once each PE has its GPU and its heap.
struct heap_offer {
  std::uint32_t wave_size, handle_bytes;
  std::uint64_t alignment;  // largest power of two that divides the heap's address
  char gpu[24];             // as gpu::identity
  std::byte handle[256];    // see gpu::heap::handle
};
static_assert(sizeof(heap_offer) == 296);

heap_offer make_offer(const gpu::heap& heap);

// Of every PE on this machine; "" for the others.
std::vector<std::string> gpus_of(const std::vector<heap_offer>& all, const std::vector<bool>& together);

// Throws if several PEs of this machine have the same GPU and XIO_GPU_SHARING forbids it.
void check_sharing(const heap_options& o, const std::vector<std::string>& gpus, int devices);

// Throws like check_hellos.
void check_offers(const std::vector<heap_offer>& all);

}  // namespace xio
