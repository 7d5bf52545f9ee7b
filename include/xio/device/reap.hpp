// SPDX-License-Identifier: MIT
// Draining the completions of a ring of any kind.
#pragma once
#include "xio/device/families.hpp"
#include "xio/device/nvme.hpp"
#include "xio/device/platform.hpp"
#include "xio/device/ring.hpp"
#include "xio/device/sdma.hpp"
#include "xio/device/selection.hpp"
#include "xio/device/view.hpp"

namespace xio::dev {

XIO_OUT_OF_LINE void reap_ring(const ring_view& r) {
  if (rdma::is_nic(r.kind)) {
    rdma::with_family(r, [&](auto family) { ring_reap<decltype(family)>(r); });
  } else if (k_has_sdma && r.kind == ring_kind::sdma) {
    ring_reap<sdma_codec>(r);
  } else if (k_has_nvme && r.kind == ring_kind::nvme) {
    ring_reap<nvme_codec>(r);
  }
}

}  // namespace xio::dev
