// SPDX-License-Identifier: MIT
#include "ctx/team.hpp"

#include "base/error.hpp"

namespace xio {
namespace {

bool holds(const std::vector<int>& pes, int pe) { return std::find(pes.begin(), pes.end(), pe) != pes.end(); }

std::vector<int> if_mine(std::vector<int> pes, int me) { return holds(pes, me) ? pes : std::vector<int>{}; }

// 0 if the members are at no fixed distance.
std::uint32_t stride_of(const std::vector<int>& pes) {
  if (pes.size() == 1) return 1;
  const int stride = pes[1] - pes[0];
  for (std::size_t i = 1; i < pes.size(); ++i)
    if (pes[i] - pes[i - 1] != stride) return 0;
  return static_cast<std::uint32_t>(stride);
}

}  // namespace

team_offer offer_of(const std::vector<int>& pes) {
  std::uint64_t digest = 14695981039346656037u;  // FNV-1a by words
  for (const int pe : pes) digest = (digest ^ static_cast<std::uint32_t>(pe)) * 1099511628211u;
  return {digest, pes.size()};
}

void check_members(const std::vector<int>& pes, int me, int n) {
  for (const int pe : pes)
    if (pe < 0 || pe >= n) fail(XIO_ERR_PE, "a team's list names PE {}, which is not one of 0 to {}", pe, n - 1);
  std::vector<int> sorted = pes;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) fail(XIO_ERR_ARG, "a team's list names PE {} twice; name each member once", *twice);
  if (!pes.empty() && !holds(pes, me))
    fail(XIO_ERR_ARG, "a team's list does not name PE {}, which gave it; a PE that is in no team gives an empty list",
         me);
}

std::uint64_t work_bytes_for(const std::vector<team_offer>& all, const dev::team_wishes& wanted) {
  std::uint64_t most = 0;
  for (const team_offer& o : all)
    if (o.count != 0) most = std::max(most, dev::team_work_bytes(o.count, wanted));
  return most;
}

void check_offers(const std::vector<int>& pes, int me, const std::vector<team_offer>& all) {
  const team_offer mine = offer_of(pes);
  for (const int pe : pes) {
    const team_offer& other = all[static_cast<std::size_t>(pe)];
    if (other.count != mine.count || other.digest != mine.digest)
      fail(XIO_ERR_ARG, "PE {} is in the list of PE {} but gave another list itself; every member gives the same one",
           pe, me);
  }
}

std::vector<int> strided_members(const std::vector<int>& parent, int me, int first, int stride, std::size_t count) {
  if (parent.empty()) return {};
  const auto n = static_cast<std::int64_t>(parent.size());
  // A count that is refused is none to reckon with: its product may be no number.
  const bool counts = count >= 1 && count <= parent.size();
  const std::int64_t last = counts ? first + (static_cast<std::int64_t>(count) - 1) * stride : -1;
  if (stride == 0 || first < 0 || first >= n || last < 0 || last >= n)
    fail(XIO_ERR_ARG, "{} members from {} on with stride {} are not all among the {} of the parent", count, first,
         stride, n);
  std::vector<int> pes;
  for (std::int64_t at = first; pes.size() < count; at += stride) pes.push_back(parent[static_cast<std::size_t>(at)]);
  return if_mine(std::move(pes), me);
}

grid_lines lines_of(const std::vector<int>& parent, int me, int width) {
  if (parent.empty()) return {};
  if (width < 1) fail(XIO_ERR_ARG, "rows of {} members; give a width of at least 1", width);
  const auto at = static_cast<std::size_t>(std::find(parent.begin(), parent.end(), me) - parent.begin());
  const auto row = static_cast<std::size_t>(width);
  grid_lines lines;
  for (std::size_t i = 0; i < parent.size(); ++i) {
    if (i / row == at / row) lines.x.push_back(parent[i]);
    if (i % row == at % row) lines.y.push_back(parent[i]);
  }
  return lines;
}

xio_team_t team::value(std::uint64_t id, int me, unsigned char* heap, const dev::team_wishes& wanted) const {
  xio_team_t t{};
  t.id = id;
  if (pes.empty()) return t;
  t.token = token;
  t.list = list.data();
  t.work = heap + offset;
  t.my_pe = static_cast<std::uint32_t>(std::find(pes.begin(), pes.end(), me) - pes.begin());
  t.n_pes = static_cast<std::uint32_t>(pes.size());
  t.channels = static_cast<std::uint16_t>(wanted.channels);
  t.first = static_cast<std::uint32_t>(pes[0]);
  t.stride = stride_of(pes);
  t.packet_bytes = dev::team_packet_bytes(pes.size(), wanted.packets);
  t.area_bytes = static_cast<std::uint32_t>(dev::team_area_bytes(pes.size(), wanted.area));
  return t;
}

}  // namespace xio
