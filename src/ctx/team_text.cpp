// SPDX-License-Identifier: MIT
#include "ctx/team_text.hpp"

#include <fmt/core.h>

#include "ctx/handles.hpp"
#include "ctx/team.hpp"
#include "xio/device/impl/team_tag.hpp"
#include "xio/xio.h"

namespace xio {
namespace {

using dev::teams::op;
using dev::teams::refusal;

const char* name_of(op what) {
  switch (what) {
    case op::sync: return "xio_team_sync";
    case op::barrier: return "xio_team_barrier";
    case op::broadcast: return "xio_broadcast";
    case op::alltoall: return "xio_alltoall";
    case op::alltoallv: return "xio_alltoallv";
    case op::fcollect: return "xio_fcollect";
    case op::collect: return "xio_collect";
    case op::reduce: return "xio_reduce";
    case op::reduce_scatter: return "xio_reduce_scatter";
  }
  return "a call of a team";
}

bool has_count(op what) { return what == op::broadcast || what == op::alltoall || what == op::fcollect; }
bool reduces(op what) { return what == op::reduce || what == op::reduce_scatter; }

std::string type_of(std::uint32_t detail) {
  const std::uint32_t bytes = 1u << (detail & dev::teams::k_log2_size);
  if ((detail & dev::teams::k_brain_floats) != 0) return "xio_bfloat16_t";
  if ((detail & dev::teams::k_floats) == 0) return fmt::format("{}-byte integers", bytes);
  return bytes == 2 ? "xio_half_t" : bytes == 4 ? "float" : "double";
}

std::string reduction_of(std::uint32_t detail) {
  static constexpr std::array names = {"sum", "product", "minimum", "maximum", "and", "or", "xor"};
  const std::size_t number = detail >> dev::teams::k_reduction_shift;
  return fmt::format(", {} of {}", number < names.size() ? names[number] : "?", type_of(detail));
}

std::string channel_name(std::uint64_t word) {
  return fmt::format("{} ({} members, channel {})", team_name(word >> 32), word >> 8 & 0xffffff, word & 0xff);
}

// Of a number of 19 bits, which may be negative.
std::int32_t root_of(std::uint32_t bits) { return static_cast<std::int32_t>(bits << 13) >> 13; }

std::string member_name(const dev::call_record& r, std::uint64_t member) {
  return fmt::format("PE {}, its member {},", static_cast<std::int32_t>(r.pe), member);
}

// Why a member refused its own arguments, as its tag says it.
std::string reason_there(std::uint32_t tag) {
  switch (static_cast<refusal>(tag >> dev::teams::k_tag_detail_shift)) {
    case refusal::null_pointer: return "one is null";
    case refusal::not_symmetric: return "dst or src is not in the symmetric heap";
    case refusal::unreachable: return "no engine reaches src";
    case refusal::overlap: return "dst and src overlap";
    case refusal::no_such_root: return fmt::format("there is no root {}", root_of(tag & dev::teams::k_tag_bytes));
    case refusal::unequal: return "the sizes of two members differ";
    default: return "see its xio_ctx_error";
  }
}

std::string unlike_text(const dev::call_record& r, std::uint32_t mine, std::uint32_t other) {
  const std::string member = member_name(r, r.found);
  if (other == dev::teams::k_refuses)
    return fmt::format("{} has heard of a member in another call; xio_ctx_error there says more", member);
  if (dev::teams::is_refusal(other))
    return fmt::format("{} refused its own arguments: {}; xio_ctx_error there says more", member, reason_there(other));
  const std::string theirs = team_call_name(other);
  constexpr const char* cure = "all members call alike, in counts, types and roots";
  if (theirs != team_call_name(mine)) return fmt::format("{} called {}; {}", member, theirs, cure);
  return fmt::format("{} gave another count, or reaches its peers by other routes; {}", member, cure);
}

std::string reason_of(const dev::call_record& r, std::uint32_t mine, std::uint32_t other) {
  switch (static_cast<refusal>(r.words)) {
    case refusal::unlike: return unlike_text(r, mine, other);
    case refusal::null_pointer: return "an argument is null; give the buffers and arrays that the call asks for";
    case refusal::not_symmetric:
      return fmt::format(
          "{} bytes from dst on, or those of src, are not in the symmetric heap; take them from xio_malloc", r.bytes);
    case refusal::overlap: return "dst and src overlap; give memory that lies apart, or to a reduce dst == src";
    case refusal::unreachable:
      return "src is in memory that no engine reaches; take it from xio_malloc, or call xio_mem_register";
    case refusal::no_such_root:
      return fmt::format("there is no root {}; members are 0 to xio_team_n_pes - 1",
                         static_cast<std::int32_t>(r.found));
    case refusal::unequal:
      return fmt::format("this PE gave {} bytes for member {}, whose dst_bytes has {}; give both the same", r.bytes,
                         r.found, r.wanted);
    case refusal::excluded: return "a member of the team was excluded (xio_exclude); make a team without it before";
    case refusal::empty_team: return "the team is empty; PEs that are in no team do not call";
    case refusal::foreign: return "the team is of another world than the ctx; give a ctx of the world that made it";
    case refusal::destroyed: return "the team was destroyed; destroy it when no kernel uses it any more";
    case refusal::broken:
      if (static_cast<std::int32_t>(r.found) == XIO_ERR_ARG)
        return "a broadcast before it was refused by this member; now all know that, and the next call can succeed";
      return fmt::format(
          "an earlier call on this channel ended with {}; use another channel, or destroy the team and create it anew",
          xio_status_name(static_cast<xio_status_t>(static_cast<std::int32_t>(r.found))));
    case refusal::none: break;
  }
  return "it was refused";
}

}  // namespace

std::string team_name(std::uint64_t id) {
  return fmt::format("team {}{}", handles<team>::serial(id),
                     handles<team>::is_alone(id) ? " of those that some PEs have made" : "");
}

std::string team_call_name(std::uint32_t tag) {
  const auto what = static_cast<op>(tag >> dev::teams::k_tag_op_shift);
  const std::uint32_t detail = tag >> dev::teams::k_tag_detail_shift & 0xff;
  std::string text = name_of(what);
  if (has_count(what) || reduces(what))
    text += (tag & dev::teams::k_tag_folded) != 0 ? " of 512 KiB or more"
                                                  : fmt::format(" of {} bytes", tag & dev::teams::k_tag_bytes);
  if (what == op::broadcast) text += fmt::format(" from root {}", detail);
  if (reduces(what)) text += reduction_of(detail);
  return text;
}

std::string refused_text(const dev::call_record& r) {
  const auto mine = static_cast<std::uint32_t>(r.local), other = static_cast<std::uint32_t>(r.local >> 32);
  return fmt::format("{} on {}: {}", team_call_name(mine), channel_name(r.address), reason_of(r, mine, other));
}

std::string missing_member_text(const dev::call_record& r) {
  if (r.found != 0)
    return fmt::format(
        "{} on {}: PE {} has not come, and another call of this PE has used the channel meanwhile; give each workgroup "
        "and kernel its own (xio_team_channel)",
        team_call_name(static_cast<std::uint32_t>(r.words)), channel_name(r.address), static_cast<std::int32_t>(r.pe));
  return fmt::format(
      "{} on {}: {} has not come within XIO_TIMEOUT_MS; look whether it is alive and makes the same calls, or raise "
      "XIO_TIMEOUT_MS",
      team_call_name(static_cast<std::uint32_t>(r.words)), channel_name(r.address), member_name(r, r.wanted));
}

}  // namespace xio
