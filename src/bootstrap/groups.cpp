// SPDX-License-Identifier: MIT
#include "bootstrap/groups.hpp"

#include "base/log.hpp"

namespace xio::bootstrap {

namespace {

// Ranks that have come early, and the groups that they wait in: more are ranks that have lost their way.
constexpr std::size_t k_early_most = 4096;

}  // namespace

void groups::agree_on_keys(channel& world) {
  if (links_) return;
  links_.emplace(member_links::self{rank_, world.keys(), {}, options_.tcp_trust_network != 0},
                 std::vector<member_place>(static_cast<std::size_t>(size_)));
}

group_place groups::offer() {
  group_place mine{};
  try {
    if (!own_) {
      auto listening = listen_for_members(options_);
      links_->listen(std::move(listening.listeners));
      own_ = listening.id;
    }
    mine.id = *own_;
    while (mine.word == 0) crypto::fill_random(&mine.word, sizeof mine.word);
  } catch (const error& e) {
    log::debug("PE {} does not listen for the members of its teams: {}", rank_, e.what());
  }
  return mine;
}

std::unique_ptr<group_channel> groups::open(const pe_set& members, const group_place& place) {
  const int root = members.lowest();
  if (root != rank_ && place.word != 0) {
    try {
      links_->learn(root, {addresses_in(place.id, options_), 0});
    } catch (const error& e) {
      log::debug("PE {} does not reach the teams of PE {}: {}", rank_, root, e.what());
      return std::make_unique<group_channel>(*this, members, 0);
    }
  }
  return std::make_unique<group_channel>(*this, members, place.word);
}

std::unique_ptr<star_channel> groups::build(const pe_set& members, std::uint64_t word, const deadline& until) {
  if (word == 0)
    fail(XIO_ERR_NO_ROUTE,
         "the members of a team exchange by sockets around the lowest of them, PE {}, and PE {} has no address of it; "
         "see XIO_TCP_INTERFACE",
         members.lowest(), rank_);
  return build_star({*links_, members, rank_, word, options_.timeout_ms, [&] { check_living_(members); },
                     [&](int pe, const frame& f) { keep_early(pe, f); },
                     [&](int pe) {
                       const auto found = early_.extract({word, pe});
                       return found ? std::move(found.mapped()) : sealed_link();
                     }},
                    until);
}

void groups::keep_early(int pe, const frame& f) {
  const auto word = greeted_word(f);
  if (word && early_.size() < k_early_most) early_[{*word, pe}] = links_->take(pe);
}

// A channel that has failed stays so.
template <class Exchange>
auto group_channel::guarded(Exchange&& exchange) {
  if (broken_) throw error(*broken_);
  try {
    if (star_ == nullptr) star_ = all_.build(members_, word_, end_of_exchange(all_.options_.timeout_ms));
    star_->limit(limit());
    return exchange();
  } catch (const error& e) {
    broken_.emplace(e.status(), fmt::format("{}; the members of this team agree on nothing any more", e.what()));
    star_.reset();
    throw error(*broken_);
  }
}

std::vector<std::byte> group_channel::allgather(std::span<const std::byte> mine) {
  check_allgather_size(mine.size());
  return guarded([&] { return star_->allgather(mine); });
}

cells group_channel::all_to_all(const cells& mine) {
  check_cells(mine);
  return guarded([&] { return star_->all_to_all(mine); });
}

}  // namespace xio::bootstrap
