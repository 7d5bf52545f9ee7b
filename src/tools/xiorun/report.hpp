// SPDX-License-Identifier: MIT
// What PEs can read of those that have ended, so that nobody waits for them; src/bootstrap/run_report.hpp has its form.
#pragma once
#include <string>

#include "base/unique_fd.hpp"

namespace xio::run {

class report {
 public:
  report(const std::string& root, int pes);

  // By which children open it, however many descriptors of theirs were closed; empty if there is none.
  std::string path() const;
  void ended(int pe, int status);

 private:
  unique_fd file_;
};

}  // namespace xio::run
