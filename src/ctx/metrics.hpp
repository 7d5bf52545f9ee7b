// SPDX-License-Identifier: MIT
// Counts of this PE's queues in the file of XIO_METRICS, as OpenMetrics text. A thread of their own makes it, which
// only worlds have that want it: no op has an instruction for it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "xio/device/impl/view.hpp"

namespace xio {

class membership;

// The queues of a ctx or storage.
struct counted_queues {
  const void* owner;
  std::string labels;  // ctx="1"
  std::vector<dev::ring_view> rings;
  std::vector<int> peers;  // of each, or nothing where they lead to a drive
};

class metrics {
 public:
  // option: FILE:SECONDS; throws XIO_ERR_CONFIG for others.
  metrics(const std::string& option, const membership& members);
  ~metrics();  // the last counts are those that stay

  // In the place of what its owner has shown before. Any thread.
  void add(const counted_queues& q);
  // On return its rings are not read any more.
  void forget(const void* owner);

 private:
  struct counts {
    std::uint64_t ops = 0, bytes = 0, doorbells = 0, errors = 0, under_way = 0, failed = 0;
  };
  using rows = std::map<std::tuple<std::string, std::string, int>, counts>;  // by owner's labels, engine and PE
  struct family;
  static const family k_families[];

  static void gather(const counted_queues& from, rows& to);
  void run();
  std::string text();

  std::string file_, labels_;
  std::chrono::seconds period_{};
  std::mutex lock_;  // of what follows, and what queues_ lead to
  bool stop_ = false;
  std::condition_variable wake_;
  std::vector<counted_queues> queues_;
  rows ended_;  // of owners that are no more
  std::thread thread_;
};

}  // namespace xio
