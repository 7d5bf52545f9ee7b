// SPDX-License-Identifier: MIT
// How far a long run is: a line that is written over on a terminal, now and then a plain line in a log, on standard
// error. Nothing is said of a run that is over within the first seconds.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace xio::tools {

class progress {
 public:
  using clock = std::chrono::steady_clock;

  // what: "nvme-ep write". unit: "ops". total: 0 if there is no end. bytes_each: 0 if a rate in bytes says nothing.
  progress(std::string what, std::string unit, std::uint64_t total, std::uint64_t bytes_each = 0);
  ~progress() { clear(); }
  progress& operator=(progress&&) = delete;

  void clear();  // of a terminal, before something else is printed there
  void update(std::uint64_t done) { update(done, clock::now()); }
  void update(std::uint64_t done, clock::time_point now);

  // "nvme-ep write: 50% 500/1000 ops, 100 ops/s, 400.0 KiB/s, 5 s left"
  std::string line(std::uint64_t done, double seconds) const;

 private:
  std::string what_, unit_;
  std::uint64_t total_, bytes_each_;
  bool terminal_, shown_ = false;
  clock::time_point start_;
  clock::time_point next_;
  clock::duration pause_;
};

}  // namespace xio::tools
