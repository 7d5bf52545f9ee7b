// SPDX-License-Identifier: MIT
// xiorun's report of PEs that have ended: a file that XIO_RUN_REPORT names, by which ranks that wait for one of them
// know at once that it does not come. xiorun writes it, src/tools/xiorun/report.cpp.
#pragma once
#include "bootstrap/socket.hpp"

namespace xio::bootstrap {

inline constexpr std::size_t k_report_root_bytes = 64;  // host:port of the run's world, padded with zeros
// Then one word for each PE: 0 while it runs, else this and the status as a shell has it.
inline constexpr std::uint32_t k_report_ended = 0x100;

class run_report {
 public:
  // Of the world at `root`; without a report of it, of another world, or outside xiorun nothing is known.
  explicit run_report(const endpoint& root);

  bool known() const { return static_cast<bool>(file_); }
  // "rank 2 has ended with status 0", or empty.
  std::string end_of(int rank) const;

 private:
  unique_fd file_;
};

}  // namespace xio::bootstrap
