// SPDX-License-Identifier: MIT
#include "tools/xiorun/report.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "bootstrap/run_report.hpp"

namespace xio::run {

using bootstrap::k_report_ended;
using bootstrap::k_report_root_bytes;

report::report(const std::string& root, int pes) : file_(memfd_create("xiorun-report", MFD_CLOEXEC)) {
  std::vector<char> text(k_report_root_bytes + static_cast<std::size_t>(pes) * sizeof(std::uint32_t));
  std::copy_n(root.begin(), std::min(root.size(), k_report_root_bytes - 1), text.begin());
  if (file_ && pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) file_.reset();
}

std::string report::path() const {
  return file_ ? "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get()) : "";
}

void report::ended(int pe, int status) {
  const std::uint32_t word = k_report_ended | static_cast<std::uint32_t>(status & 0xff);
  const auto at = k_report_root_bytes + static_cast<std::size_t>(pe) * sizeof word;
  if (file_) (void)!pwrite(file_.get(), &word, sizeof word, static_cast<off_t>(at));
}

}  // namespace xio::run
