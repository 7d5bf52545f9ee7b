// SPDX-License-Identifier: MIT
#include "bootstrap/world_keys.hpp"

#include "base/mac.hpp"
#include "bootstrap/bytes.hpp"

namespace xio::bootstrap {

namespace {

enum class key_state : std::uint32_t { none = 1, has, wrong };

// Each rank sends this to all, over a channel that is sealed the half alone.
struct offer {
  ephemeral_key::half public_half;
  std::byte state[4];
  std::byte proof[mac::k_bytes];
};
static_assert(sizeof(offer) == 68);

mac proof_of(const secret& key, int rank, int size, const ephemeral_key::half& public_half) {
  std::byte numbers[8];
  store_le32(numbers, static_cast<std::uint32_t>(rank));
  store_le32(numbers + 4, static_cast<std::uint32_t>(size));
  mac m(key.data(), "xio world open half");
  m.add(numbers);
  m.add(std::as_bytes(std::span(public_half)));
  return m;
}

key_state state_of(const configured_key* key) {
  if (key == nullptr) return key_state::none;
  return key->key ? key_state::has : key_state::wrong;
}

std::uint32_t state_of(const offer& o) { return load_le32(o.state); }

// Every rank judges the same list, so all come to the same error.
void check(const std::vector<offer>& all, int rank, const secret& key) {
  const auto wrong = static_cast<std::uint32_t>(key_state::wrong), has = static_cast<std::uint32_t>(key_state::has);
  for (std::size_t r = 0; r < all.size(); ++r)
    if (state_of(all[r]) == wrong)
      fail(XIO_ERR_PEER, "rank {} cannot use its XIO_TCP_KEY or XIO_TCP_KEY_FILE; its own error says why", r);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (state_of(all[r]) != state_of(all[0]))
      fail(XIO_ERR_CONFIG,
           "rank {} has XIO_TCP_KEY or XIO_TCP_KEY_FILE and rank {} has not; give the key to every rank or to none",
           state_of(all[0]) == has ? 0 : r, state_of(all[0]) == has ? r : 0);
  if (state_of(all[static_cast<std::size_t>(rank)]) != has) return;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (!proof_of(key, static_cast<int>(r), static_cast<int>(all.size()), all[r].public_half).equals(all[r].proof))
      fail(XIO_ERR_AUTH,
           "rank {} holds another key than rank {}; give every rank the same XIO_TCP_KEY or XIO_TCP_KEY_FILE", r, rank);
}

}  // namespace

std::shared_ptr<const configured_key> configured_key::from(const bootstrap_options& o) {
  if (!has_key(o)) return nullptr;
  auto out = std::make_shared<configured_key>();
  try {
    crypto::start();
    out->key = load_key(o);
  } catch (const error& e) {
    out->wrong = e;
  }
  return out;
}

world_keys::world_keys(int rank, bool proven, const configured_key* key) : rank_(rank), proven_(proven) {
  if (key != nullptr && key->key) key_ = *key->key;
}

std::shared_ptr<const world_keys> world_keys::agree(channel& c, const configured_key* key, bool sealed) {
  crypto::start();
  const std::shared_ptr<world_keys> made(
      new world_keys(c.rank(), crypto::k_proves && (sealed || key != nullptr), sealed ? nullptr : key));
  if (sealed) {  // the channel is what the key would prove
    made->public_halves_ = allgather_value(c, made->mine_.public_half());
    return made;
  }
  offer mine{made->mine_.public_half(), {}, {}};
  store_le32(mine.state, static_cast<std::uint32_t>(state_of(key)));
  proof_of(made->key_, c.rank(), c.size(), mine.public_half).result(mine.proof);
  const auto all = allgather_value(c, mine);
  if (key != nullptr && key->wrong) throw error(*key->wrong);
  check(all, c.rank(), made->key_);
  for (const offer& o : all) made->public_halves_.push_back(o.public_half);
  return made;
}

secret world_keys::with(int rank, std::string_view purpose) const {
  const auto lower = static_cast<std::size_t>(std::min(rank, rank_)),
             higher = static_cast<std::size_t>(std::max(rank, rank_));
  ephemeral_key::half both;
  if (!mine_.agree(public_halves_[static_cast<std::size_t>(rank)].data(), both))
    fail(XIO_ERR_AUTH, "rank {} showed an open key that is none; run the same XIO on every rank", rank);
  std::byte numbers[12];
  store_le32(numbers, static_cast<std::uint32_t>(public_halves_.size()));
  store_le32(numbers + 4, static_cast<std::uint32_t>(lower));
  store_le32(numbers + 8, static_cast<std::uint32_t>(higher));
  mac m(key_.data(), purpose);
  m.add(numbers);
  for (const auto* piece : {&public_halves_[lower], &public_halves_[higher], &std::as_const(both)})
    m.add(std::as_bytes(std::span(*piece)));
  secret out;
  m.result(out.data());
  explicit_bzero(both.data(), both.size());
  return out;
}

std::shared_ptr<const world_keys> channel::keys() {
  if (keys_ == nullptr) keys_ = world_keys::agree(*this, key_.get(), sealed());
  return keys_;
}

}  // namespace xio::bootstrap
