// SPDX-License-Identifier: MIT
// Host side of NVMe: controllers and their I/O queues.
#pragma once
#include "base/options.hpp"
#include "base/payload.hpp"
#include "progress/machine.hpp"
#include "xio/device/impl/view.hpp"
#include "xio/xio.h"

namespace xio::nvme {

class controller {
 public:
  virtual ~controller() = default;  // clean shutdown
  // The last steps of opening, when nothing else can be refused any more: a file becomes as long as it was asked to be,
  // and then empty where that was asked. Without the second what is behind the controller is as it was in the end.
  // Before any command of a user.
  virtual void grow() {}
  virtual void commit() {}
  // Later: makes a file `bytes` long at least. Returns how long it is then, also where others made it longer; nothing
  // of a drive, which keeps its size. A refusal leaves it as it was.
  virtual std::optional<std::uint64_t> extend(std::uint64_t /*bytes*/) { return std::nullopt; }
  // For the log: what it is and how its doorbells are rung, as "model io_uring, doorbells bar".
  virtual const char* backend() const = 0;
  // Filled but for `queues`, `slot` and `space`; see queue_set::view.
  virtual dev::storage_view view() const = 0;
  virtual dev::ring_view queue_view(std::uint32_t queue) const = 0;  // filled but for `index`
  virtual std::uint32_t queue_count() const = 0;
  // Ends what the queues still do: from then on no command touches memory, and none is taken. Before the memory that
  // commands name is unmapped; the views above stay as they are.
  virtual void stop() noexcept = 0;
  // Drives with one token see all memory at the same addresses; null: it is a software drive.
  virtual std::shared_ptr<const void> domain() const = 0;
  // Memory that commands may name; returns its bus address, contiguous over `bytes`, or k_in_runs and the offset of
  // base in its table.
  virtual std::uint64_t map(void* base, std::size_t bytes) = 0;
  // Of memory that map() returned k_in_runs for: the word of its table (xio/device/impl/bus_rows.hpp), which stays
  // until unmap(). The same for every controller that sees the memory at the same addresses.
  virtual std::uint64_t rows_of(void* /*base*/, std::size_t /*bytes*/) const { return 0; }
  virtual void unmap(void* base, std::size_t bytes) = 0;  // what map() was given
  // Before any kernel posts: tries whether it reaches the memory that kernels see. `page` is k_trial_bytes that nobody
  // else uses, in [base, base + bytes), which is mapped. Throws where it does not. Software devices always do.
  virtual void check_reach(void* /*page*/, void* /*base*/, std::size_t /*bytes*/) {}
};

// The inputs from which a controller is opened. All but the name and attributes outlive the controller.
struct opening {
  const std::string& name;  // whole, for sentences
  std::string rest;         // behind the scheme's colon, not empty
  const xio_storage_attr_t& attr;
  const nvme_options& opts;
  progress::machine& machine;
  const payload_agent& payload;
};

// name: "file:PATH[?block=BYTES&size=BYTES]", "block:PATH", "nvme:BDF/NSID" or "kmod:BDF/NSID".
std::unique_ptr<controller> open_controller(const std::string& name, const xio_storage_attr_t& attr,
                                            const nvme_options& o, progress::machine& machine,
                                            const payload_agent& payload);

// The attributes for a block device that may be opened: whole and nobody's, and without data where it is written.
// Throws.
xio_storage_attr_t attr_of_free_device(const opening& what, const std::string& path);  // block_open.cpp

// One for each scheme, in a file of its own.
std::unique_ptr<controller> open_file(const opening& what);   // file_open.cpp
std::unique_ptr<controller> open_block(const opening& what);  // block_open.cpp
std::unique_ptr<controller> open_vfio(const opening& what);   // vfio_open.cpp
std::unique_ptr<controller> open_kmod(const opening& what);   // kmod_open.cpp

}  // namespace xio::nvme
