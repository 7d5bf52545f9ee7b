// SPDX-License-Identifier: MIT
#include "progress/machine.hpp"

#include <sched.h>
#include <signal.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"

namespace xio::progress {
namespace {

// The application's signals are not for a device. Above all SIGXFSZ: a drive that exceeds the file-size limit has a
// status for that, and the process shall live.
void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

// Turns without work before the core is offered to others: a device that waits for work is quicker if it did not
// call the kernel meanwhile. Where cores are few, others may well be what is waited for.
unsigned eager_turns() { return std::thread::hardware_concurrency() >= 8 ? 2000 : 0; }

// Turns without work after those that are eager.
constexpr unsigned k_yields = 4000, k_yields_awake = 200, k_short_sleeps = 20000;
// A device looks by itself so often, for work that nobody wakes it for: memory that was taken away from a drive.
constexpr std::chrono::milliseconds k_rest{200};

// A device's turn; false in `*alive` if it cannot go on. On a GPU every copy fails once a kernel has died of a fault.
bool poll_one(device& d, bool* alive) {
  try {
    return d.poll();
  } catch (const std::exception& e) {
    *alive = false;
    log::error("a software device stops, for {}; what waits for it ends with XIO_ERR_TIMEOUT", e.what());
    return true;
  }
}

// A device that throws is taken out by its next turn.
bool rests(device& d, sleeper::descriptors& found) {
  try {
    return d.at_rest(found);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

machine::machine(unsigned threads) {
  const unsigned wanted = std::max(1u, threads);
  runners_.reserve(wanted);
  while (runners_.size() < wanted) {
    auto r = std::make_unique<runner>();
    try {
      r->thread = start_thread("the software devices", [this, one = r.get()] { run(*one); });
    } catch (const error& e) {
      if (runners_.empty()) throw;
      log::warn("{}; {} instead of {} run them", e.what(), runners_.size(), wanted);
      return;
    }
    runners_.push_back(std::move(r));
  }
}

machine::~machine() {
  stop_.store(true, std::memory_order_relaxed);
  for (auto& r : runners_) {
    // Through the lock, so that who looked before waits by now.
    r->turns.visit().unlock();
    r->wanted.notify_one();
  }
  for (auto& r : runners_) r->thread.join();
}

// Real drives need no machine, but a world has one: it costs nothing until there is a software device.
void machine::wait_for_devices(runner& r) {
  std::unique_lock hold(r.turns.lock());
  r.wanted.wait(hold, [&] { return !r.devices.empty() || stop_.load(std::memory_order_relaxed); });
}

// Under the lock. True if any device had work.
bool machine::take_turns(runner& r) {
  bool worked = false;
  for (auto d = r.devices.begin(); d != r.devices.end();) {
    bool alive = true;
    worked |= poll_one(**d, &alive);
    d = alive ? d + 1 : r.devices.erase(d);
  }
  return worked;
}

// Sleeps if no device has anything to do but what wakes it.
sleeper::slept machine::rest(runner& r) {
  const auto may_sleep = [&](sleeper::descriptors& found) {
    const std::lock_guard hold(r.turns.lock());
    if (stop_.load(std::memory_order_relaxed) || r.turns.visited() || take_turns(r)) return false;
    return std::ranges::all_of(r.devices, [&](device* d) { return rests(*d, found); });
  };
  sleeper::descriptors none;
  if (!r.sleep.can_sleep() || !may_sleep(none)) return sleeper::slept::no;
  return r.sleep.sleep(k_rest, may_sleep);
}

void machine::run(runner& r) {
  block_signals();
  const unsigned eager = eager_turns();
  unsigned idle = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    bool worked = false, bare = false;
    if (!r.turns.visited()) {
      const std::lock_guard hold(r.turns.lock());
      worked = take_turns(r);
      bare = r.devices.empty();
    }
    if (bare) wait_for_devices(r);
    if (worked || bare) {
      idle = 0;
      continue;
    }
    // Busy machines serve at once; idle ones give the cores away, and after some milliseconds sleep: until they are
    // woken, or where nothing wakes them a little at a time.
    if (++idle < eager) continue;
    if (idle < eager + k_yields) {
      sched_yield();
      continue;
    }
    switch (rest(r)) {
      case sleeper::slept::no:
        std::this_thread::sleep_for(std::chrono::microseconds(idle < eager + k_short_sleeps ? 20 : 200));
        break;
      case sleeper::slept::until_called:
        idle = eager + k_yields - k_yields_awake;  // perhaps for another device's doorbell, and the next one comes soon
        break;
      case sleeper::slept::for_its_time: break;
    }
  }
}

void machine::add(device* d) {
  const std::lock_guard alone(members_);
  auto fewest = std::ranges::min_element(
      runners_, [](const auto& a, const auto& b) { return a->devices.size() < b->devices.size(); });
  runner& r = **fewest;
  {
    const auto hold = r.turns.visit();
    r.devices.push_back(d);
  }
  r.wanted.notify_one();
}

void machine::remove(device* d) {
  const std::lock_guard alone(members_);
  for (auto& r : runners_) {
    const auto hold = r->turns.visit();
    std::erase(r->devices, d);
  }
}

}  // namespace xio::progress
