// SPDX-License-Identifier: MIT
// The storages that a world has open, each in a row of world_view::storages.
#pragma once
#include "ctx/argument_text.hpp"
#include "ctx/engines.hpp"
#include "ctx/handles.hpp"
#include "xio/xio.h"

namespace xio {

// Open drives and files: a row of world_view::storages each, and the queues behind it.
class storage {
 public:
  // row: of world_view::storages in device memory, and its number. serial: what the handle says, not 0.
  storage(engines& e, const nvme_options& o, const std::string& name, const xio_storage_attr_t& attr,
          dev::storage_view* row, std::uint32_t slot, std::uint32_t serial);
  ~storage();
  storage& operator=(storage&&) = delete;

  const std::string& name() const { return name_; }
  std::uint32_t slot() const { return view_.slot; }
  const dev::storage_view& view() const { return view_; }
  // As xio_storage_grow.
  void grow(std::uint64_t bytes);
  dev::storage_view* row() const { return row_; }
  const std::vector<dev::ring_view>& rings() const { return rings_; }
  // Above the tickets of all its requests.
  std::uint64_t next_ticket() const noexcept;
  // Waits for the commands that are under way now. If they do not end within `patience` the queues are stopped, which
  // ends them: the storage then refuses ops with XIO_ERR_TIMEOUT until it is opened again.
  void end_commands(std::chrono::milliseconds patience) noexcept;
  // After that: a queue on which a wait has timed out, whose commands have ended since, takes work again.
  void go_on();

 private:
  void show_rings();
  void detach() noexcept;

  engines& engines_;
  std::string name_;
  dev::storage_view* row_;
  dev::storage_view view_{};
  std::vector<std::unique_ptr<nvme::controller>> members_;
  std::vector<dev::bus_space> spaces_;  // of members_
  std::size_t attached_ = 0;            // of members_
  bool stopped_ = false;
  std::vector<dev::ring_view> rings_;
  gpu::buffer ring_rows_;
};

class storage_book {
 public:
  // rows: in device memory. The book keeps references to its arguments. world: see handles.
  storage_book(const nvme_options& o, engines& e, dev::storage_view* rows, std::uint32_t world)
      : options_(o), engines_(e), rows_(rows), storages_("storage", "closed", world) {}

  // take_row is called with the row of the new storage, before the storage is there.
  xio_storage_t open(const char* name, const xio_storage_attr_t* attr,
                     const std::function<void(std::uint32_t row)>& take_row);
  void close(xio_storage_t s);
  void grow(xio_storage_t s, std::uint64_t bytes) { storages_.get(s.id).grow(bytes); }
  const dev::storage_view& info(xio_storage_t s) const { return storages_.get(s.id).view(); }
  // Of the storage with that number in this world, if it is open.
  std::optional<storage_place> place_of(std::uint32_t serial) const;
  const dev::storage_view* row(xio_storage_t s) const { return storages_.get(s.id).row(); }
  xio_engine_stats_t stats(xio_storage_t s) const;
  const std::vector<dev::ring_view>& rings(xio_storage_t s) const { return storages_.get(s.id).rings(); }
  void clear();

  // Those of `used`, a bit per row. For both see storage.
  void end_commands(std::uint32_t used, std::chrono::milliseconds patience) noexcept;
  void go_on(std::uint32_t used);
  // Whether `find` is true for the rings of one of them; it is the last that is asked.
  bool any_of(std::uint32_t used, const std::function<bool(const std::vector<dev::ring_view>&)>& find) const;

 private:
  const nvme_options& options_;
  engines& engines_;
  dev::storage_view* rows_;
  handles<storage> storages_;
  std::array<std::uint64_t, dev::k_max_storages> first_tickets_{};  // of the next storage in a row
};

}  // namespace xio
