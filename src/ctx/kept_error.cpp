// SPDX-License-Identifier: MIT
#include "ctx/kept_error.hpp"
#include "ctx/failure_text.hpp"
#include "ctx/rings.hpp"

namespace xio {

xio_error_info_t kept_error(const context& c, const storage_book& storages, const call_place& here) {
  const std::uint32_t used = c.storages_used();
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  std::uint64_t when = 0;
  // A queue that has stopped, else the last op of a drive that failed by itself.
  if (!c.ring_failure(info, when) &&
      !storages.any_of(used, [&](const auto& rings) { return find_stopped(rings, info, when); }))
    storages.any_of(used, [&](const auto& rings) { return find_failure(rings, {}, info, when); });
  // The last failure: a call's own, unless it only met what its engine had recorded.
  dev::call_record call{};
  if (!c.failed_call(call)) return info;
  const auto status = static_cast<xio_status_t>(static_cast<std::int32_t>(call.status));
  if (info.status != XIO_OK && (status == info.status || call.clock <= when)) return info;
  xio_error_info_t own{sizeof own, status, "device", 0, 0, 0, ""};
  const auto on = is_transfer(call) ? storages.place_of(call.pe) : std::nullopt;
  call_place there = here;
  if (on) there.storage = &*on;
  put_sentence(own, call_text(call, there));
  return own;
}

}  // namespace xio
