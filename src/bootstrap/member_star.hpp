// SPDX-License-Identifier: MIT
// A star of some ranks around the lowest of them, made of links between members.
#pragma once
#include <functional>

#include "bootstrap/member_links.hpp"
#include "bootstrap/tcp.hpp"

namespace xio::bootstrap {

struct star_plan {
  member_links& links;
  const pe_set& members;
  int rank;
  std::uint64_t word;  // of this star: by it the others greet the root
  std::uint64_t timeout_ms;
  std::function<void()> check_living;           // called often; throws where a member has ended
  std::function<void(int, const frame&)> hear;  // what comes that is no greeting of this star
  std::function<sealed_link(int)> early;        // of a member that has greeted the root before, or none
};

// Returns when all links are there. Throws XIO_ERR_TIMEOUT naming the members that have not come; those that have hear
// of it.
std::unique_ptr<star_channel> build_star(const star_plan& p, const deadline& until);

// Of a frame that greets the root of a star: its word.
std::optional<std::uint64_t> greeted_word(const frame& f);

}  // namespace xio::bootstrap
