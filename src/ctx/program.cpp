// SPDX-License-Identifier: MIT
#include "ctx/program.hpp"

#include <atomic>

#include "base/error.hpp"
#include "transport/rdma/vendor_text.hpp"
#include "xio/device/impl/layout.hpp"
#include "xio/internal.h"

namespace xio::program {
namespace {

// Words without a constructor: files of the program tell before this library's own statics need have run.
std::atomic<std::uint32_t> engines_missing{0}, families_missing{0};
std::atomic<std::uint32_t> other_layout{dev::k_layout};  // the first that is not this library's

struct engine_word {
  std::uint32_t bit;
  dev::route route;
  const char* word;
};
constexpr engine_word k_routes[] = {{XIO_HAS_DIRECT, dev::route::direct, "direct"},
                                    {XIO_HAS_RDMA, dev::route::rdma, "rdma"},
                                    {XIO_HAS_SDMA, dev::route::sdma, "sdma"}};
constexpr std::uint32_t k_engines = XIO_HAS_DIRECT | XIO_HAS_RDMA | XIO_HAS_SDMA | XIO_HAS_NVME | XIO_HAS_HDP;

std::uint32_t bit_of(dev::ring_kind kind) { return 1u << static_cast<std::uint32_t>(kind); }

std::uint32_t all_families() {
  using dev::ring_kind;
  return bit_of(ring_kind::mlx5) | bit_of(ring_kind::bnxt) | bit_of(ring_kind::ionic) | bit_of(ring_kind::ernic) |
         bit_of(ring_kind::proxy);
}

[[noreturn]] void refuse(const char* call, const char* need, const char* word) {
  fail(
      XIO_ERR_STATE,
      "{}: {}, and a file of this program was compiled without it; add {} to its XIO_ENGINES, or leave XIO_ENGINES out",
      call, need, word);
}

}  // namespace

void add_file(std::uint32_t engines, std::uint32_t families) noexcept {
  engines_missing |= k_engines & ~engines;
  families_missing |= all_families() & ~families;
}

void add_layout(std::uint32_t layout) noexcept {
  std::uint32_t own = dev::k_layout;
  if (layout != own) other_layout.compare_exchange_strong(own, layout);
}

void check_layout(const char* call) {
  if (other_layout == dev::k_layout) return;
  fail(XIO_ERR_STATE,
       "{}: a file of this program has kernels for layout {} of a ctx, and this libxio writes layout {}; compile "
       "all files with kernels with the headers of the libxio that runs (pkg-config --cflags xio)",
       call, other_layout.load(), dev::k_layout);
}

bool has(std::uint32_t engine) noexcept { return (engines_missing & engine) == 0; }
bool has_all() noexcept { return engines_missing == 0 && families_missing == 0; }

void fit(ctx_settings& settings) noexcept {
  if (settings.route == XIO_ROUTE_AUTO && !has(XIO_HAS_SDMA)) settings.bulk_bytes = 0;
}

void check_routes(const char* call, const route_plan& plan, bool flushes) {
  for (const engine_word& e : k_routes) {
    if (has(e.bit)) continue;
    for (std::size_t pe = 0; pe < plan.to.size(); ++pe) {
      if (!plan.to[pe].uses(e.route)) continue;
      const std::string need = fmt::format("kernels reach PE {} by route {}", pe, e.word);
      refuse(call, need.c_str(), e.word);
    }
    if (plan.flush == e.route) {
      const std::string need = fmt::format("kernels flush the host data path by {}", e.word);
      refuse(call, need.c_str(), e.word);
    }
  }
  if (flushes && !has(XIO_HAS_HDP)) refuse(call, "kernels must flush this GPU's host data path (XIO_HDP)", "hdp");
}

void check_ring(const char* call, dev::ring_kind kind) {
  if ((families_missing & bit_of(kind)) == 0) return;
  const char* family = rdma::family_name(kind);
  fail(XIO_ERR_STATE,
       "{}: the NIC's queues are of the family {}, and a file of this program was compiled without it; add {} to its "
       "XIO_FAMILIES, or leave XIO_FAMILIES out",
       call, family, family);
}

void check_storage(const char* call) {
  if (!has(XIO_HAS_NVME)) refuse(call, "kernels reach storages by NVMe queues", "nvme");
}

}  // namespace xio::program
