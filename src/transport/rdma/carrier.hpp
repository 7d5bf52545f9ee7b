// SPDX-License-Identifier: MIT
// Which way RDMA goes in a world: over a real device, by a provider of libfabric, or on the software NIC by shared
// memory or TCP. All PEs take the same.
#pragma once
#include <array>
#include <exception>
#include <string>

#include "bootstrap/bootstrap.hpp"

namespace xio::rdma {

enum class carrier : std::uint32_t { shm = 1, tcp = 2, verbs = 3, libfabric = 4 };

const char* name_of(carrier c);

// Why a PE cannot do something, as it tells the others.
using reason = std::array<char, 244>;
reason make_reason(const std::string& sentence);
std::string text_of(const reason& why);

// The carriers that one PE can use, and its settings.
struct carrier_offer {
  std::uint32_t wanted;   // 0: auto, else a carrier
  std::uint32_t backend;  // 0 auto, 1 hw, 2 model
  std::uint32_t mapped;   // every peer's heap is in this address space
  std::uint32_t verbs;    // a usable RDMA device is here
  reason why_no_verbs{};
  std::uint32_t slingshot = 0;  // a NIC that libfabric drives is here
  std::uint32_t connects = 0;   // XIO_CONNECT
  std::uint32_t eager = 0;      // queue pairs cannot be made while kernels run
};

// Pure: by the offers of all PEs; throws naming the PE that stands in the way. `why_not`: why this PE has no device.
carrier choose_carrier(const std::vector<carrier_offer>& all, int me, const std::string& why_not);

// Collective. Says what was not taken and why; that PEs on several machines get the software NIC, at the usual level.
// why_not_lazy: as of setup; *lazy: what all have come to.
carrier agree_on_carrier(bootstrap::channel& c, const rdma_options& o, bool mapped, const std::string& why_no_verbs,
                         const std::string& why_no_slingshot = "not looked for", const std::string& why_not_lazy = "",
                         bool* lazy = nullptr);

// Over real devices kernels can drive the queues by themselves, where device, driver and platform allow it (mlx5, bnxt,
// ionic). Every PE does, or none does: what they exchange is not the same.
enum class direct_state : std::uint32_t {
  unwanted = 1,  // the options ask for another way
  ready,
  absent,   // the device is of another kind, or this build lacks what it takes
  failed,   // it did not work
  refused,  // the options ask for what it cannot do
};
struct direct_offer {
  std::uint32_t state;
  std::uint32_t forced;         // XIO_NIC_FAMILY names the queues: its word
  std::int32_t status;          // of absent, failed and refused
  std::array<char, 16> format;  // of ready: the vendor's queues, "bnxt"
  reason why;
};
bool wants_direct(const rdma_options& o);
direct_offer make_direct_offer(const rdma_options& o, direct_state state, xio_status_t status, const std::string& why,
                               const std::string& format = "");

// Pure. Taken if every PE is ready. Throws the same on every PE if one asks for it by name and one cannot, or if
// options refuse it to those who could all have it.
struct direct_verdict {
  bool taken;
  int pe;                // the first that stands in the way, -1: none that wants it
  bool worth_a_warning;  // it wanted it, and something did not work
  std::string why_not;
};
direct_verdict choose_direct(const std::vector<direct_offer>& all);

// Collective.
bool agree_on_direct(bootstrap::channel& c, const direct_offer& mine);

// Whether every PE could open its NICs: throws on every PE if one could not, on that PE what `failure` holds, elsewhere
// its reason with its number. Collective.
void agree_on_opening(bootstrap::channel& c, const std::exception_ptr& failure);

// The family for that carrier: XIO_NIC_FAMILY, or what fits.
std::string family_name(const rdma_options& o, carrier c);

}  // namespace xio::rdma
