// SPDX-License-Identifier: MIT
#include "ctx/storage_book.hpp"

#include <bit>

#include "base/backends.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "ctx/program.hpp"
#include "ctx/rings.hpp"
#include "ctx/stripes.hpp"
#include "xio/device/impl/request.hpp"

namespace xio {

storage::storage(engines& e, const nvme_options& o, const std::string& name, const xio_storage_attr_t& attr,
                 dev::storage_view* row, std::uint32_t slot, std::uint32_t serial)
    : engines_(e), name_(name), row_(row) {
  const std::vector<std::string> names = member_names(name);
  const xio_storage_attr_t share = member_attr(attr, static_cast<std::uint32_t>(names.size()));
  std::vector<dev::storage_view> views;
  for (const std::string& one : names) {
    members_.push_back(nvme::open_controller(one, share, o, e.machine(), gpu::payload()));
    views.push_back(members_.back()->view());
    views.back().space = e.space_of(*members_.back());
    spaces_.push_back(views.back().space);
  }
  view_ = stripe(names, views, attr);
  view_.slot = slot;
  view_.live = serial;
  if (view_.queue_count == 0 || view_.queue_count > dev::k_max_storage_queues)
    fail(XIO_ERR_INTERNAL, "{} came with {} queues; this is a bug of XIO", name, view_.queue_count);
  show_rings();
  try {
    for (; attached_ < members_.size(); ++attached_) e.attach(*members_[attached_]);
    // Not before all of them are good: what is refused leaves every file as it was.
    for (const auto& m : members_) m->grow();
    for (const auto& m : members_) m->commit();
    gpu::put_value(row_, view_);
  } catch (...) {
    detach();
    throw;
  }
  for (std::size_t m = 0; m < names.size(); ++m) note_backend("storage " + names[m], members_[m]->backend());
}

void storage::show_rings() {
  for (std::uint32_t m = 0; m < view_.members; ++m)
    for (std::uint32_t q = 0; q < view_.member_queues; ++q) {
      dev::ring_view ring = members_[m]->queue_view(q);
      ring.nvme.space = spaces_[m];
      ring.index = dev::k_storage_ring_base + view_.slot * dev::k_max_storage_queues + m * view_.member_queues + q;
      rings_.push_back(ring);
    }
  ring_rows_ = gpu::buffer(rings_.size() * sizeof(dev::ring_view), gpu::place::device);
  gpu::copy(ring_rows_.data(), rings_.data(), rings_.size() * sizeof(dev::ring_view));
  view_.queues = ring_rows_.as<dev::ring_view>();
}

void storage::grow(std::uint64_t bytes) {
  constexpr std::uint64_t k_most = std::uint64_t{1} << 63;
  if (bytes > k_most)
    fail(XIO_ERR_ARG, "cannot grow {} to {} bytes: {} are the most; ask for less", name_, bytes, k_most);
  xio_storage_attr_t whole = XIO_STORAGE_ATTR_INIT;
  whole.bytes = bytes;
  whole.stripe_bytes = std::uint64_t{1} << view_.stripe_log2;  // one member has one stripe, and this is not looked at
  const std::uint64_t share = member_attr(whole, view_.members).bytes;
  std::uint64_t least = k_most / view_.members;
  for (const auto& m : members_) {
    const auto length = m->extend(share);
    if (!length && bytes > view_.bytes)
      fail(XIO_ERR_UNSUPPORTED, "cannot grow {} from {} to {} bytes: a drive keeps its size; files grow", name_,
           view_.bytes, bytes);
    if (!length) return;
    least = std::min(least, *length);
  }
  view_.bytes = view_.members == 1 ? least : (least >> view_.stripe_log2 << view_.stripe_log2) * view_.members;
  gpu::put_value(&row_->bytes, view_.bytes);
}

std::uint64_t storage::next_ticket() const noexcept {
  std::uint64_t next = 0;
  try {
    for (const auto& ring : rings_) {
      std::uint64_t issued = 0;
      gpu::copy(&issued, &ring.state->issued, sizeof issued);
      next = std::max(next, issued);
    }
  } catch (const std::exception& e) {
    log::debug("while closing {}: {}", name_, e.what());  // a GPU that is gone: no kernel asks any more
  }
  return next;
}

void storage::detach() noexcept {
  while (attached_ > 0) engines_.detach(*members_[--attached_]);
}

void storage::end_commands(std::chrono::milliseconds patience) noexcept {
  try {
    if (stopped_ || commands_end(rings_, patience)) return;
    log::warn("{}: commands did not end within {} ms, so its queues are stopped; close it and open it again", name_,
              patience.count());
    // The rings fail before the queues are stopped: commands still under way have not ended by themselves, and a status
    // that the drive writes for them while it is stopped must not count.
    fail_rings(rings_, XIO_ERR_TIMEOUT);
  } catch (const std::exception& e) {
    log::warn("{}: whether commands are under way cannot be seen, so its queues are stopped: {}", name_, e.what());
  }
  stopped_ = true;
  for (const auto& m : members_) m->stop();
}

void storage::go_on() {
  if (!stopped_) forget_timeouts(rings_);
}

storage::~storage() {
  try {
    gpu::put_value(&row_->live, std::uint32_t{0});
  } catch (const std::exception& e) {
    log::debug("while closing {}: {}", name_, e.what());
  }
  // Commands end before the memory that they name goes.
  for (const auto& m : members_) m->stop();
  detach();
}

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
