// SPDX-License-Identifier: MIT
// The command ring of QEMU's PCI MMIO bridge as bytes. Source: the bridge's documentation and header as posted to
// qemu-devel (pci-mmio-bridge; ring metadata in the first 24-byte slot, commands in those behind it). Pure: no state.
#pragma once
#include <cstddef>
#include <cstdint>

#include "xio/wire/endian.hpp"

namespace xio::wire::mmio_bridge {

// Both indices count up and never wrap at the depth: the slot is index % depth, behind the metadata.
struct meta {
  std::uint32_t producer;  // written by the requester
  std::uint32_t consumer;  // written by the bridge; older ones leave it 0
  std::uint32_t depth;     // commands, written by the bridge
  std::uint32_t reserved;
};
static_assert(sizeof(meta) == 16);

struct command {
  std::uint16_t bdf;  // bus << 8 | devfn
  std::uint8_t bar;
  std::uint8_t reserved1;
  std::uint32_t offset;  // in the BAR
  std::uint64_t value;   // to write, or what was read
  std::uint8_t what;
  std::uint8_t size;  // 1, 2, 4 or 8
  std::uint8_t status;
  std::uint8_t reserved2;
  std::uint32_t sequence;
};
static_assert(sizeof(command) == 24 && offsetof(command, value) == 8 && offsetof(command, what) == 16 &&
              offsetof(command, sequence) == 20);

constexpr std::uint8_t k_write = 1;
constexpr std::uint8_t k_read = 2;
constexpr std::uint8_t k_pending = 0;
constexpr std::uint8_t k_complete = 1;
constexpr std::uint8_t k_error = 2;

// Commands that fit a ring of that many bytes.
XIO_WIRE std::uint32_t depth_of(std::uint64_t bytes) { return static_cast<std::uint32_t>(bytes / sizeof(command)) - 1; }
// Byte offset of the command of an index.
XIO_WIRE std::uint64_t slot_of(std::uint32_t index, std::uint32_t depth) {
  return (std::uint64_t{index} % depth + 1) * sizeof(command);
}

}  // namespace xio::wire::mmio_bridge
