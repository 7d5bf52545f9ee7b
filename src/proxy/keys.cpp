// SPDX-License-Identifier: MIT
#include "proxy/keys.hpp"

namespace xio::proxy {

namespace {

bool is_sound(const region& r) { return r.bytes != 0 && r.base + r.bytes > r.base && r.mapping != nullptr; }

}  // namespace

std::uint32_t key_table::add(const region& r) {
  if (!is_sound(r)) return 0;
  auto free = std::ranges::find_if(rows_, [](const row& x) { return x.key == 0; });
  if (free == rows_.end()) free = rows_.insert(rows_.end(), row{});
  const auto index = static_cast<std::uint32_t>(free - rows_.begin()) + 1;
  free->key = (((seed_ << 10) + index) << 8) | (++made_ & 0xff);
  free->what = r;
  return free->key;
}

bool key_table::adopt(std::uint32_t key, const region& r) {
  if (key == 0 || row_of(key) != nullptr || !is_sound(r)) return false;
  rows_.push_back(row{key, r});
  return true;
}

bool key_table::remove(std::uint32_t key) {
  const row* found = row_of(key);
  if (found == nullptr) return false;
  rows_[static_cast<std::size_t>(found - rows_.data())] = row{};
  return true;
}

// Few rows, and the heap's comes first.
const key_table::row* key_table::row_of(std::uint32_t key) const {
  if (key == 0) return nullptr;
  for (const row& x : rows_)
    if (x.key == key) return &x;
  return nullptr;
}

const region* key_table::region_of(std::uint32_t key) const {
  const row* found = row_of(key);
  return found != nullptr ? &found->what : nullptr;
}

key_table::lookup key_table::find(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, std::uint32_t wanted,
                                  unsigned char** place) const {
  const row* found = row_of(key);
  if (found == nullptr) return lookup::no_key;
  const region& r = found->what;
  const std::uint64_t at = address - r.base;
  if (address < r.base || at > r.bytes || bytes > r.bytes - at) return lookup::no_range;
  if ((r.allowed & wanted) != wanted) return lookup::no_rights;
  *place = r.mapping + at;
  return lookup::found;
}

}  // namespace xio::proxy
