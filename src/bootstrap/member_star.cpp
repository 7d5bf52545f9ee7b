// SPDX-License-Identifier: MIT
#include "bootstrap/member_star.hpp"

#include "base/error.hpp"
#include "bootstrap/bytes.hpp"

namespace xio::bootstrap {

namespace {

constexpr int k_check_ms = 20;  // between two checks for members that have ended

[[noreturn]] void fail_late(const star_plan& p, const pe_set& missing) {
  std::string names;
  for (const int pe : missing.list()) names += fmt::format("{}PE {}", names.empty() ? "" : ", ", pe);
  fail(XIO_ERR_TIMEOUT,
       "{} did not take part in an exchange within {} ms; check that they run and make the same collective calls, or "
       "raise XIO_TIMEOUT_MS",
       names, p.timeout_ms);
}

std::unique_ptr<star_channel> star_over(const star_plan& p, std::vector<sealed_link> links) {
  const bool is_root = p.members.lowest() == p.rank;
  return make_star({{}, p.rank, p.members.size(), p.timeout_ms, {}, is_root, false, {}, {}, {}}, p.members,
                   std::move(links));
}

void gather_links(const star_plan& p, std::vector<sealed_link>& links, const deadline& until) {
  pe_set missing = p.members;
  const auto take = [&](int pe, sealed_link l) {
    if (!l.is_open()) return;
    links[static_cast<std::size_t>(pe)] = std::move(l);
    missing.remove(pe);
  };
  missing.remove(p.rank);
  for (const int pe : missing.list()) take(pe, p.early(pe));
  while (!missing.empty()) {
    p.check_living();
    if (until.passed()) fail_late(p, missing);
    for (const auto& [pe, f] : p.links.poll(until.poll_ms(k_check_ms))) {
      if (greeted_word(f) == p.word && missing.has(pe))
        take(pe, p.links.take(pe));
      else
        p.hear(pe, f);
    }
  }
}

std::unique_ptr<star_channel> build_as_root(const star_plan& p, const deadline& until) {
  std::vector<sealed_link> links(static_cast<std::size_t>(p.members.size()));
  try {
    gather_links(p, links, until);
  } catch (const error& e) {
    for (sealed_link& l : links) {
      if (!l.is_open()) continue;
      l.queue_abort(e.status(), e.what());
      p.links.part(std::move(l));
    }
    throw;
  }
  return star_over(p, std::move(links));
}

std::unique_ptr<star_channel> join(const star_plan& p, const deadline& until) {
  pe_set root(p.members.size());
  root.add(p.members.lowest());
  const int to = root.lowest();
  while (!p.links.has(to)) {
    p.links.open(to);
    p.check_living();
    if (until.passed()) fail_late(p, root);
    for (const auto& [pe, f] : p.links.poll(until.poll_ms(k_check_ms))) p.hear(pe, f);
  }
  std::array<std::byte, 8> greeting;
  store_le64(greeting.data(), p.word);
  p.links.send(to, frame_kind::welcome, greeting);
  std::vector<sealed_link> links;
  links.push_back(p.links.take(to));
  return star_over(p, std::move(links));
}

}  // namespace

std::optional<std::uint64_t> greeted_word(const frame& f) {
  if (f.kind != frame_kind::welcome || f.payload.size() != 8) return std::nullopt;
  return load_le64(f.payload.data());
}

std::unique_ptr<star_channel> build_star(const star_plan& p, const deadline& until) {
  if (p.members.lowest() == p.rank) return build_as_root(p, until);
  return join(p, after_root(until, p.timeout_ms));
}

}  // namespace xio::bootstrap
