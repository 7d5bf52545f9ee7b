// SPDX-License-Identifier: MIT
// Exchanges of some of a world's ranks, of which the others know nothing: by a star of their own, around the lowest of
// them. Its links are made with the first exchange.
#pragma once
#include <map>

#include "bootstrap/member_star.hpp"
#include "bootstrap/unique_id.hpp"

namespace xio::bootstrap {

// The lowest rank of a group gives this to the others: where it listens, and the word by which they greet it.
struct group_place {
  xio_unique_id_t id;
  std::uint64_t word;  // 0: it has no address
};

class group_channel;

// Of one world. The groups use it, and must end before it.
class groups {
 public:
  // check_living: throws where one of these ranks has ended.
  groups(channel& world, const bootstrap_options& o, std::function<void(const pe_set&)> check_living)
      : options_(o), rank_(world.rank()), size_(world.size()), check_living_(std::move(check_living)) {}

  // Before all that follows, once. Collective over the world.
  void agree_on_keys(channel& world);
  // Of a group whose lowest rank this is.
  group_place offer();
  // A channel that counts ranks as the world does, in which the group's take part.
  std::unique_ptr<group_channel> open(const pe_set& members, const group_place& place);

 private:
  friend class group_channel;
  std::unique_ptr<star_channel> build(const pe_set& members, std::uint64_t word, const deadline& until);
  void keep_early(int pe, const frame& f);

  const bootstrap_options options_;
  const int rank_, size_;
  const std::function<void(const pe_set&)> check_living_;
  std::optional<member_links> links_;
  std::optional<xio_unique_id_t> own_;
  // Of ranks that are in an exchange of another group than this rank.
  std::map<std::pair<std::uint64_t, int>, sealed_link> early_;
};

// One that has failed stays so.
class group_channel final : public channel {
 public:
  group_channel(groups& all, pe_set members, std::uint64_t word)
      : all_(all), members_(std::move(members)), word_(word) {}

  int rank() const override { return all_.rank_; }
  int size() const override { return all_.size_; }
  const char* name() const override { return "tcp"; }
  bool sealed() const override { return true; }
  bool takes_part(int rank) const override { return members_.has(rank); }
  bool is_broken() const { return broken_.has_value(); }

  std::vector<std::byte> allgather(std::span<const std::byte> mine) override;
  cells all_to_all(const cells& mine) override;

 private:
  template <class Exchange>
  auto guarded(Exchange&& exchange);

  groups& all_;
  const pe_set members_;
  const std::uint64_t word_;
  std::unique_ptr<star_channel> star_;
  std::optional<error> broken_;
};

}  // namespace xio::bootstrap
