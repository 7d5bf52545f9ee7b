// SPDX-License-Identifier: MIT
#include "bootstrap/pair_seals.hpp"

#include "base/mac.hpp"
#include "bootstrap/bytes.hpp"
#include "bootstrap/world_keys.hpp"

namespace xio::bootstrap {

namespace {

// Some tags that were seen do not say what the next will be.
std::uint64_t tag_of(const secret& key, std::uint64_t number) {
  std::byte in[8], out[mac::k_bytes];
  store_le64(in, number);
  mac m(key.data(), "xio tag");
  m.add(in);
  m.result(out);
  return load_le64(out);
}

}  // namespace

const std::size_t pair_seals::k_bytes = crypto::k_tag_bytes;

pair_seals::pair_seals(channel& c) : rank_(c.rank()) {
  const auto keys = c.keys();
  for (int rank = 0; rank < c.size(); ++rank) {
    direction to, from;
    if (rank != rank_) {
      const secret both = keys->with(rank, "xio ucx messages");
      const bool lower = rank_ < rank;
      const auto derive = [&](bool up, direction& out) {
        mac(both.data(), up ? "xio seal to the higher rank" : "xio seal to the lower rank").result(out.seal.data());
        mac(both.data(), up ? "xio tags to the higher rank" : "xio tags to the lower rank").result(out.tag.data());
      };
      derive(lower, to);
      derive(!lower, from);
    }
    to_.push_back(to);
    from_.push_back(from);
  }
}

std::uint64_t pair_seals::tag_to(int rank, std::uint64_t number) const {
  return tag_of(to_[static_cast<std::size_t>(rank)].tag, number);
}
std::uint64_t pair_seals::tag_from(int rank, std::uint64_t number) const {
  return tag_of(from_[static_cast<std::size_t>(rank)].tag, number);
}

std::vector<std::byte> pair_seals::seal(int to, std::uint64_t number, std::span<const std::byte> plain) const {
  std::vector<std::byte> sealed(plain.size() + k_bytes);
  auto* tag = reinterpret_cast<unsigned char*>(sealed.data() + plain.size());
  crypto::seal(to_[static_cast<std::size_t>(to)].seal.view(), number, {}, plain, sealed.data(),
               crypto::tag_room(tag, crypto::k_tag_bytes));
  return sealed;
}

bool pair_seals::unseal(int from, std::uint64_t number, std::span<const std::byte> sealed, std::byte* plain) const {
  const auto* tag = reinterpret_cast<const unsigned char*>(sealed.data() + sealed.size() - k_bytes);
  return crypto::unseal(from_[static_cast<std::size_t>(from)].seal.view(), number, {},
                        sealed.first(sealed.size() - k_bytes), plain,
                        std::span<const unsigned char, crypto::k_tag_bytes>(tag, crypto::k_tag_bytes));
}

}  // namespace xio::bootstrap
