// SPDX-License-Identifier: MIT
// What can be made to go wrong with I/O commands.
#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "xio/wire/nvme.hpp"

namespace xio::model::nvme {

struct fault {
  enum class kind {
    status,  // completes with `status`, nothing is transferred
    delay,   // is not looked at before `delay` has gone by
    hold,    // does not complete until release()
  } what = kind::status;
  std::uint8_t opcode = static_cast<std::uint8_t>(wire::nvme::opcode::read);
  std::uint64_t first_lba = 0;
  std::uint64_t last_lba = ~std::uint64_t{0};
  std::uint32_t times = 1;                                // commands that it hits
  std::uint32_t status = wire::nvme::k_unrecovered_read;  // 15 bits: SCT<<8 | SC, and DNR
  std::chrono::milliseconds delay{0};
};

// Thread safe.
class fault_list {
 public:
  void add(const fault& f) {
    std::lock_guard hold(lock_);
    faults_.push_back(f);
  }

  // The first that fits uses itself up.
  std::optional<fault> hit(std::uint8_t opcode, std::uint64_t lba, std::uint64_t blocks) {
    std::lock_guard hold(lock_);
    for (fault& f : faults_) {
      if (f.times == 0 || f.opcode != opcode || lba > f.last_lba || lba + blocks <= f.first_lba) continue;
      --f.times;
      return f;
    }
    return std::nullopt;
  }

 private:
  std::mutex lock_;
  std::vector<fault> faults_;
};

}  // namespace xio::model::nvme
