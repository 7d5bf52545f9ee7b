// SPDX-License-Identifier: MIT
// What can be made to go wrong with I/O commands: by a test, or by XIO_MODEL_FAULTS.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "xio/wire/nvme.hpp"

namespace xio::model::nvme {

struct fault {
  enum class kind {
    status,  // completes with `status`, nothing is transferred
    delay,   // is not looked at before `delay` has gone by
    hold,    // does not complete until release()
    lose,    // never completes
    die,     // the controller reports a fatal error (CSTS.CFS) and does nothing more until it is reset
    file,    // the file refuses it with `error`
    skip,    // completes as if it had been done
    astray,  // is done to the blocks from `lba` on, in place of those that it names
  } what = kind::status;
  std::optional<std::uint8_t> opcode = static_cast<std::uint8_t>(wire::nvme::opcode::read);  // nothing: any
  std::uint64_t first_lba = 0;
  std::uint64_t last_lba = ~std::uint64_t{0};
  std::uint32_t times = 1;                                // commands that it hits
  std::uint32_t status = wire::nvme::k_unrecovered_read;  // 15 bits: SCT<<8 | SC, and DNR
  std::chrono::microseconds delay{0};
  int error = 0;                                      // errno
  std::uint64_t lba = 0;                              // of what goes astray
  double chance = 1;                                  // of each command that fits
  std::optional<std::uint64_t> nth = std::nullopt;    // only this command of its queue, from 0
  std::optional<std::uint32_t> queue = std::nullopt;  // only of this I/O queue, from 0
};

// The faults of a whole drive, on purpose.
struct fault_plan {
  std::vector<fault> faults;
  std::uint64_t seed = 1;
  bool shuffle = false;  // completions go out in random order
};

// Of a text in the grammar of XIO_MODEL_FAULTS (docs/faults.md). Throws XIO_ERR_CONFIG naming the place.
fault_plan plan_faults(const std::string& text);

// An I/O command as a fault sees it.
struct occasion {
  std::uint32_t queue;  // from 0
  std::uint64_t nth;    // of its queue
  std::uint8_t opcode;
  std::uint64_t lba, blocks;
};

// Thread safe.
class fault_list {
 public:
  void add(const fault& f);
  void seed(std::uint64_t s);

  // The first that fits uses itself up.
  std::optional<fault> hit(const occasion& o) {
    if (!any_.load(std::memory_order_acquire)) return std::nullopt;
    return find(o);
  }

 private:
  std::optional<fault> find(const occasion& o);
  bool strikes(std::size_t index, const occasion& o) const;

  std::atomic<bool> any_{false};
  std::mutex lock_;
  std::vector<fault> faults_;
  std::uint64_t seed_ = 1;
};

}  // namespace xio::model::nvme
