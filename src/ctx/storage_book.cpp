// SPDX-License-Identifier: MIT
#include "ctx/storage_book.hpp"

#include <algorithm>
#include <bit>

#include "base/log.hpp"
#include "ctx/program.hpp"
#include "ctx/rings.hpp"

namespace xio {
namespace {

bool is_used(std::uint32_t used, const storage& s) { return (used >> s.slot() & 1) != 0; }

}  // namespace

xio_storage_t storage_book::open(const char* name, const xio_storage_attr_t* attr,
                                 const std::function<void(std::uint32_t row)>& take_row) {
  program::check_storage("xio_storage_open");
  const xio_storage_attr_t a = choose_storage(attr, options_);
  std::uint32_t taken = 0;
  for (const auto& [id, s] : storages_.live()) taken |= 1u << s->slot();
  const auto slot = static_cast<std::uint32_t>(std::countr_one(taken));
  if (slot >= dev::k_max_storages)
    fail(XIO_ERR_NO_MEMORY, "xio_storage_open: {} storages are open and that is the most; close one before '{}'",
         dev::k_max_storages, name);
  take_row(slot);
  const auto serial = static_cast<std::uint32_t>(storages_.serial(storages_.next()));
  nvme_options o = options_;
  o.ticket_start = std::max(o.ticket_start, first_tickets_[slot]);
  dev::storage_view* row = rows_ + slot;
  return xio_storage_t{row, storages_.add(std::make_unique<storage>(engines_, o, name, a, row, slot, serial))};
}

void storage_book::close(xio_storage_t s) {
  const storage& closing = storages_.get(s.id);
  // Queues begin at a lap of their CQ, which has less entries than this: a request of the closed storage is none of
  // those that the next one in its place gives.
  constexpr std::uint64_t lap = std::uint64_t{1} << 16;
  std::uint64_t& first = first_tickets_[closing.slot()];
  first = std::max(first, (closing.next_ticket() / lap + 1) * lap);
  storages_.remove(s.id);
}

xio_engine_stats_t storage_book::stats(xio_storage_t s) const {
  xio_engine_stats_t out = XIO_ENGINE_STATS_INIT;
  add_stats(storages_.get(s.id).rings(), out);
  return out;
}

std::optional<storage_place> storage_book::place_of(std::uint32_t serial) const {
  const auto found = storages_.live().find(storages_.id_of(serial));
  if (found == storages_.live().end()) return std::nullopt;
  const dev::storage_view& v = found->second->view();
  const bool of_bytes = (v.features & dev::storage_of_bytes) != 0;
  return storage_place{found->second->name(), v.bytes, of_bytes ? 1 : v.block_bytes, v.read_only != 0};
}

void storage_book::clear() {
  for (const auto& [id, s] : storages_.live()) log::debug("xio_finalize closes {}", s->name());
  storages_.clear();
}

void storage_book::end_commands(std::uint32_t used, std::chrono::milliseconds patience) noexcept {
  for (const auto& [id, s] : storages_.live())
    if (is_used(used, *s)) s->end_commands(patience);
}

void storage_book::go_on(std::uint32_t used) {
  for (const auto& [id, s] : storages_.live())
    if (is_used(used, *s)) s->go_on();
}

bool storage_book::any_of(std::uint32_t used,
                          const std::function<bool(const std::vector<dev::ring_view>&)>& find) const {
  const auto& all = storages_.live();
  return std::ranges::any_of(all, [&](const auto& s) { return is_used(used, *s.second) && find(s.second->rings()); });
}

}  // namespace xio
