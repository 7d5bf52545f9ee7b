// SPDX-License-Identifier: MIT
// The addresses of a port and a queue pair of a real RDMA device as peers get them, and whether two ends can talk.
// Pure.
#pragma once
#include <string>

#include "proxy/fabric.hpp"

namespace xio::proxy {

// Values as in rdma-core libibverbs/verbs.h: IBV_LINK_LAYER_*, enum ibv_gid_type.
enum class link_layer : std::uint8_t { unspecified = 0, infiniband = 1, ethernet = 2 };
enum class gid_kind : std::uint8_t { ib = 0, roce_v1 = 1, roce_v2 = 2 };
using gid = std::array<std::uint8_t, 16>;

// The vendor of a NIC, by its PCI number.
enum class nic_vendor : std::uint8_t { other, nvidia, broadcom, pensando };

const char* text_of(link_layer l);
const char* text_of(gid_kind k);
std::string text_of(const gid& g);
// ::ffff:a.b.c.d
bool is_ipv4(const gid& g);

// Of a port; and if qpn is not 0, of a queue pair on it.
struct verbs_address {
  std::string device;  // at most 63 characters
  std::uint8_t port = 0;
  link_layer link = link_layer::unspecified;
  gid_kind kind = gid_kind::ib;
  std::uint8_t mtu = 0;  // active, as enum ibv_mtu: 1 is 256 bytes, 5 is 4096
  std::uint16_t lid = 0;
  std::uint16_t gid_index = 0;
  gid address{};
  std::uint8_t responder_depth = 0;  // reads and atomics from one peer at a time
  std::uint32_t qpn = 0;
  std::uint32_t psn = 0;  // of the first packet
};

device_address pack(const verbs_address& c);
// Throws, naming the PE, for what no XIO with a working RDMA port says. `queue`: whether it must be of a queue pair.
verbs_address unpack(const device_address& from, int pe, bool queue);

// "rxe0:1 gid[1] ::ffff:10.0.0.1 qpn 17"
std::string text_of(const verbs_address& c);
std::uint32_t mtu_bytes(std::uint8_t mtu);

// Throws, naming both ends, if their ports cannot reach each other.
void check_pair(const verbs_address& mine, const verbs_address& remote, int pe);
// The path's MTU; forced 0: the smaller of both.
std::uint8_t agree_mtu(const verbs_address& mine, const verbs_address& remote, int pe, std::uint8_t forced);

}  // namespace xio::proxy
