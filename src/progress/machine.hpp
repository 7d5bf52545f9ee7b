// SPDX-License-Identifier: MIT
// Software devices and the host threads that run them. A device is polled; it finds its work in the rings and
// doorbells that device code writes, like hardware would.
#pragma once
#include <condition_variable>
#include <memory>
#include <thread>

#include "progress/turn_lock.hpp"

namespace xio::progress {

class device {
 public:
  virtual ~device() = default;
  // One short turn: poll the doorbells, do some work. True if there was any. Called by one thread at a time. An
  // exception is logged, and that turn was its last.
  virtual bool poll() = 0;
  // Part of the turn that another thread has at the moment, where it can be shared. True if there was any. Thread safe.
  virtual bool assist() { return false; }
  // True: until a doorbell rings, or a descriptor that it adds is ready, a turn would find nothing to do. Doorbells
  // that poll() does not look at each time are looked at here. Called behind a turn without work, by the same thread.
  virtual bool at_rest(sleeper::descriptors&) { return false; }
  // Whether the last turn with work had much that nobody can assist with. Called by the thread that has the turn.
  virtual bool heavy() const { return false; }
};

// Runs devices on a few threads until they are removed. Thread safe.
class machine {
 public:
  explicit machine(unsigned threads);
  ~machine();
  machine& operator=(machine&&) = delete;

  void add(device* d);
  // On return the device is not being polled and never will be.
  void remove(device* d);

 private:
  struct runner {
    turn_lock turns;                 // add and remove come between two
    std::condition_variable wanted;  // a runner without devices waits for it
    std::vector<device*> devices;
    std::thread thread;
    sleeper sleep;
  };
  void run(runner& r);
  bool take_turns(runner& r);
  sleeper::slept rest(runner& r);
  void wait_for_devices(runner& r);

  std::atomic<bool> stop_{false};
  std::mutex members_;  // one add or remove at a time: add compares the lengths of all lists
  std::vector<std::unique_ptr<runner>> runners_;
};

}  // namespace xio::progress
