// SPDX-License-Identifier: MIT
// What a drive says of itself: register CAP, Identify of the controller and of a namespace (NVMe base 2.0, 3.1.3.1 and
// 5.17; NVM command set 1.0, 4.1.5).
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "xio/xio.h"

namespace xio::nvme {

struct drive_facts {
  std::uint32_t stride = 0;          // CAP.DSTRD
  std::uint32_t max_entries = 0;     // of an I/O queue: CAP.MQES + 1
  bool contiguous = true;            // CAP.CQR; queues always are
  std::uint32_t page_bytes = 4096;   // CC.MPS
  std::uint32_t transfer_bytes = 0;  // MDTS, at most k_most_transfer
  bool write_cache = false;          // VWC
  bool compares = false;             // ONCS
  bool zeroes = false;               // ONCS: write zeroes
  bool sgls = false;                 // SGLS: data blocks at any dword
  bool shadow_doorbells = false;     // OACS: Doorbell Buffer Config
  std::uint32_t nsid = 1;
  std::uint64_t blocks = 0;
  std::uint32_t block_bytes = 0;
  bool read_only = false;
  bool shared = false;  // NMIC: another controller may have the namespace, too
  std::array<std::uint8_t, 16> nguid{};
  std::array<std::uint8_t, 8> eui64{};
};

// Of register CAP. name: for the sentence of a drive that XIO cannot use.
void read_capabilities(std::uint64_t cap, const std::string& name, drive_facts& f);
// Each page: 4096 bytes of Identify data, as the drive wrote them.
void read_controller(const unsigned char* page, drive_facts& f);
void read_namespace(const unsigned char* page, const std::string& name, drive_facts& f);
// Of the list that starts behind `wanted` - 1: that namespace, or the first where wanted is 0. Throws where it is not
// in the list.
std::uint32_t choose_namespace(const unsigned char* list, std::uint32_t wanted, const std::string& name);

// Checks that the namespace can do what the attributes ask for; throws one sentence if not.
void check_namespace(const drive_facts& f, const xio_storage_attr_t& attr, const std::string& name);

// Longer transfers are split even where the drive would take them: every command id has room for its list.
constexpr std::uint32_t k_most_transfer = 8u << 20;

}  // namespace xio::nvme
