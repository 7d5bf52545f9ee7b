// SPDX-License-Identifier: MIT
// Streams: work in order, asynchronous to the host. No stream has a thread of its own: the thread that finishes a piece
// of work starts the next one.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <vector>

#include "gpu/host/launch.hpp"

namespace xio::host_exec {

// The end of one piece of work: to wait for, to go on from.
class completion {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  void wait();
  bool wait_until(std::chrono::steady_clock::time_point end);  // false: not done then
  void finish();
  // Calls fn at the end. False, and does not, when it is done already.
  bool then(std::function<void()> fn);
  std::chrono::steady_clock::time_point when() const { return when_; }  // once done

 private:
  std::atomic<bool> done_{false};
  std::mutex guard_;
  std::condition_variable ended_;
  std::vector<std::function<void()>> then_;
  std::chrono::steady_clock::time_point when_;
};
using completion_ptr = std::shared_ptr<completion>;

// A kernel, or something else to do.
struct work {
  std::shared_ptr<launch> kernel;
  std::function<void()> task;
  bool patient = false;  // may take long or wait for others, so it gets a thread
  work again() const;    // for another run: a launch counts its workgroups
};

class capture;

class stream : public std::enable_shared_from_this<stream> {
 public:
  explicit stream(bool blocking) : blocking_(blocking) {}

  completion_ptr run_kernel(std::shared_ptr<launch> kernel);
  completion_ptr run(std::function<void()> task, bool patient);
  // Null where the stream is captured.
  completion_ptr add(work w);
  void wait_for(completion_ptr other);  // later work of this stream starts after it

  completion_ptr last();                       // of the work given so far
  std::string take_failure();                  // of kernels since the last call; empty: none
  bool blocking() const { return blocking_; }  // keeps order with the default stream

  // Null: it runs its work.
  std::shared_ptr<capture> captured_by();
  void set_capture(std::shared_ptr<capture> c);

  // The default stream, and the others that are open or closed with work that runs still.
  static std::shared_ptr<stream> standard();
  static std::shared_ptr<stream> open(bool blocking);
  static void close(const std::shared_ptr<stream>& s);
  static std::vector<std::shared_ptr<stream>> all();
  static std::string take_failure_of_closed();  // of kernels of streams that all() lists no more; empty: none

 private:
  struct op : work {
    std::vector<completion_ptr> after;
    completion_ptr done = std::make_shared<completion>();
  };
  static void forget(const std::shared_ptr<stream>& s);
  void advance(bool on_callers_thread);
  bool held_up(op& o);
  void perform(const std::shared_ptr<op>& o);
  void finished(const op& o);

  const bool blocking_;
  std::mutex guard_;
  std::deque<op> queue_;
  bool busy_ = false;  // an op runs, or the first one waits for another stream
  completion_ptr last_;
  std::vector<completion_ptr> before_next_;  // from wait_for
  std::string failure_;
  std::shared_ptr<capture> capture_;
};

}  // namespace xio::host_exec
