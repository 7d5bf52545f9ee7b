// SPDX-License-Identifier: MIT
// The C boundary of xio/peers.h.
#include "ctx/attributes.hpp"
#include "ctx/door.hpp"
#include "xio/peers.h"

namespace {

using xio::in_world;
using xio::not_null;

// How long a process may take to end once it was killed. One that waits for a device may take longer.
constexpr std::chrono::milliseconds k_kill_patience{1000};

void check_pe(const xio::world& w, const char* function, int pe) {
  if (pe < 0 || pe >= w.members().size())
    xio::fail(XIO_ERR_PE, "{}: PE {} is not one of this world's 0 to {}", function, pe, w.members().size() - 1);
}

struct exclusion {
  const int* pes;
  int count;
  std::uint32_t flags;
};

std::vector<int> checked_list(const xio::world& w, const char* function, const exclusion& e) {
  not_null(e.pes, function, "pes");
  if (e.count < 1 || e.count >= w.members().size())
    xio::fail(XIO_ERR_ARG, "{}: {} PEs; at least one has to be named, and this PE of the {} stays", function, e.count,
              w.members().size());
  if ((e.flags & ~std::uint32_t{XIO_EXCLUDE_KILL | XIO_EXCLUDE_VOUCHED}) != 0)
    xio::fail(XIO_ERR_ARG, "{}: flags {:#x} do not exist; give XIO_EXCLUDE_KILL, XIO_EXCLUDE_VOUCHED or 0", function,
              e.flags);
  std::vector<int> list;
  for (int i = 0; i < e.count; ++i) {
    const int pe = e.pes[i];
    check_pe(w, function, pe);
    if (pe == w.members().me())
      xio::fail(XIO_ERR_ARG, "{}: PE {} is this PE itself, which cannot go on without itself; name others", function,
                pe);
    for (const int before : list)
      if (before == pe) xio::fail(XIO_ERR_ARG, "{}: PE {} is named twice; name each PE once", function, pe);
    list.push_back(pe);
  }
  return list;
}

}  // namespace

extern "C" {

xio_status_t xio_pe_state(xio_world_t* world, int pe, xio_pe_info_t* info) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    not_null(info, function, "info");
    check_pe(w, function, pe);
    xio::write_out(info, w.pe_state(pe), "xio_pe_info_t");
  });
}

xio_status_t xio_exclude(xio_world_t* world, const int* pes, int count, uint32_t flags, int* could_still_write,
                         int* n_could) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    const auto list = checked_list(w, function, {pes, count, flags});
    if (could_still_write != nullptr) not_null(n_could, function, "n_could");
    if ((flags & XIO_EXCLUDE_KILL) != 0) w.members().states().kill(list, k_kill_patience);
    if ((flags & XIO_EXCLUDE_VOUCHED) != 0)
      for (const int pe : list) w.members().states().vouch_dead(pe, "the program says so");
    const auto could = w.exclude(list);
    if (n_could != nullptr) *n_could = static_cast<int>(could.size());
    for (std::size_t i = 0; could_still_write != nullptr && i < could.size(); ++i) could_still_write[i] = could[i];
  });
}

xio_status_t xio_ctx_refresh(xio_world_t* world, xio_ctx_t* ctx) {
  return in_world(world, __func__, [&, function = __func__](const xio::world& w) {
    not_null(ctx, function, "ctx");
    *ctx = w.contexts().refreshed(*ctx);
  });
}

xio_status_t xio_world_shrink(xio_world_t* world, xio_shrink_report_t* report) {
  return in_world(world, __func__, [&](xio::world& w) {
    xio_shrink_report_t unread = XIO_SHRINK_REPORT_INIT;
    xio_shrink_report_t* const to = report != nullptr ? report : &unread;
    xio::write_out(to, xio_shrink_report_t XIO_SHRINK_REPORT_INIT, "xio_shrink_report_t");
    xio::write_out(to, w.shrink(), "xio_shrink_report_t");
  });
}

}  // extern "C"
