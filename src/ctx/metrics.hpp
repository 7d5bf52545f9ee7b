// SPDX-License-Identifier: MIT
// Counts of this PE's queues as OpenMetrics text, in the file of XIO_METRICS and for xio-info, which asks by the
// wait_page. A thread of their own makes it, which sleeps until somebody asks: no op has an instruction for it. The
// same thread reads the notes of waits for XIO_TRACE.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "ctx/wait_trace.hpp"
#include "xio/device/impl/view.hpp"

namespace xio {

class membership;

// The queues of a ctx or storage.
struct counted_queues {
  const void* owner;
  std::string labels;  // ctx="1"
  std::vector<dev::ring_view> rings;
  std::vector<int> peers;                                   // of each, or nothing where they lead to a drive
  std::function<bool(dev::call_record&)> failed_call = {};  // its last call that failed; any thread
};

// One text of several, in which each family stands once. Lines behind the end of one do not count.
std::string merge_metrics(const std::vector<std::string>& texts);

class metrics {
 public:
  // option: FILE:SECONDS, or "": no file; throws XIO_ERR_CONFIG for others. page: where xio-info asks, or null.
  // traced: waits are spans of XIO_TRACE.
  metrics(const std::string& option, const membership& members, std::shared_ptr<wait_page> page, bool traced);
  ~metrics();  // the last counts are those that stay

  // Beside what its owner has shown since it was forgotten. Any thread.
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
  void write();
  void reply() noexcept;
  std::string text();
  std::string last_calls();

  std::string file_, labels_;
  std::chrono::seconds period_{};
  const std::shared_ptr<wait_page> page_;
  std::optional<wait_trace> waits_;
  unique_fd asked_, ask_, replied_;  // the ends of a pipe, and the file of the last reply
  std::atomic<bool> stop_{false};
  std::mutex lock_;  // of what follows, and what queues_ lead to
  std::vector<counted_queues> queues_;
  rows ended_;  // of owners that are no more
  std::thread thread_;
};

}  // namespace xio
