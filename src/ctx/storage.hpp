// SPDX-License-Identifier: MIT
// Open drives and files: a row of world_view::storages each, and the queues behind it.
#pragma once
#include <chrono>

#include "ctx/engines.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/xio.h"

namespace xio {

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

}  // namespace xio
