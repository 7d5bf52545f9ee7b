// SPDX-License-Identifier: MIT
#include "gpu/host/stream.hpp"

#include <exception>

#include "base/log.hpp"
#include "gpu/host/capture.hpp"
#include "gpu/host/pool.hpp"
#include "gpu/host/relax.hpp"

namespace xio::host_exec {
namespace {

struct all_streams {
  std::mutex guard;
  std::shared_ptr<stream> standard = std::make_shared<stream>(true);
  std::vector<std::shared_ptr<stream>> open;  // and closed ones whose work runs still
  std::string failure;                        // of kernels of streams that are gone; empty: none
};

// Never destroyed: kernels may still finish while the process ends.
all_streams& streams() {
  static all_streams* const all = new all_streams;
  return *all;
}

}  // namespace

// --- completion --------------------------------------------------------------------------------------

// Short kernels end while a waiting host thread still looks; longer ones let it sleep.
void completion::wait() {
  for (short_wait w; !done() && w.goes_on();) {
  }
  std::unique_lock lock(guard_);
  ended_.wait(lock, [&] { return done_.load(std::memory_order_relaxed); });
}

bool completion::wait_until(std::chrono::steady_clock::time_point end) {
  std::unique_lock lock(guard_);
  return ended_.wait_until(lock, end, [&] { return done_.load(std::memory_order_relaxed); });
}

void completion::finish() {
  std::vector<std::function<void()>> callers;
  {
    const std::lock_guard lock(guard_);
    when_ = std::chrono::steady_clock::now();
    done_.store(true, std::memory_order_release);
    callers.swap(then_);
    ended_.notify_all();
  }
  for (const auto& call : callers) call();
}

bool completion::then(std::function<void()> fn) {
  const std::lock_guard lock(guard_);
  if (done_.load(std::memory_order_relaxed)) return false;
  then_.push_back(std::move(fn));
  return true;
}

// --- stream ------------------------------------------------------------------------------------------

std::shared_ptr<stream> stream::standard() { return streams().standard; }

std::shared_ptr<stream> stream::open(bool blocking) {
  all_streams& r = streams();
  const std::lock_guard lock(r.guard);
  r.open.push_back(std::make_shared<stream>(blocking));
  return r.open.back();
}

// Listed until its work is done: a caller that waits for the device, or relies on the order of streams, waits for that
// work too.
void stream::close(const std::shared_ptr<stream>& s) {
  const completion_ptr end = s->last();
  if (end == nullptr || !end->then([s] { forget(s); })) forget(s);
}

// For other threads this is one step: a failure is with its stream or with the registry at all times.
void stream::forget(const std::shared_ptr<stream>& s) {
  all_streams& r = streams();
  const std::lock_guard lock(r.guard);
  std::erase(r.open, s);
  if (std::string why = s->take_failure(); r.failure.empty()) r.failure = std::move(why);
}

std::string stream::take_failure_of_closed() {
  all_streams& r = streams();
  const std::lock_guard lock(r.guard);
  return std::exchange(r.failure, {});
}

std::vector<std::shared_ptr<stream>> stream::all() {
  all_streams& r = streams();
  const std::lock_guard lock(r.guard);
  auto list = r.open;
  list.push_back(r.standard);
  return list;
}

completion_ptr stream::last() {
  const std::lock_guard lock(guard_);
  return last_;
}

std::string stream::take_failure() {
  const std::lock_guard lock(guard_);
  return std::exchange(failure_, {});
}

void stream::wait_for(completion_ptr other) {
  const std::lock_guard lock(guard_);
  before_next_.push_back(std::move(other));
}

work work::again() const {
  work out = *this;
  if (kernel == nullptr) return out;
  out.kernel = std::make_shared<launch>();
  out.kernel->grid = kernel->grid;
  out.kernel->block = kernel->block;
  out.kernel->shared_bytes = kernel->shared_bytes;
  out.kernel->kernel = kernel->kernel;
  return out;
}

completion_ptr stream::run_kernel(std::shared_ptr<launch> kernel) { return add({std::move(kernel), {}, false}); }

completion_ptr stream::run(std::function<void()> task, bool patient) {
  return add({nullptr, std::move(task), patient});
}

std::shared_ptr<capture> stream::captured_by() {
  const std::lock_guard lock(guard_);
  return capture_;
}

void stream::set_capture(std::shared_ptr<capture> c) {
  const std::lock_guard lock(guard_);
  capture_ = std::move(c);
}

// The default stream and the blocking ones wait for each other.
completion_ptr stream::add(work w) {
  if (const auto by = captured_by()) {
    by->record(this, std::move(w));
    return nullptr;
  }
  op o;
  static_cast<work&>(o) = std::move(w);
  if (blocking_) {
    for (const auto& other : all()) {
      if (other.get() == this || !other->blocking() || (this != standard().get() && other != standard())) continue;
      if (completion_ptr end = other->last(); end != nullptr && !end->done()) o.after.push_back(std::move(end));
    }
  }
  completion_ptr done = o.done;
  {
    const std::lock_guard lock(guard_);
    for (auto& end : std::exchange(before_next_, {})) o.after.push_back(std::move(end));
    last_ = done;
    queue_.push_back(std::move(o));
  }
  advance(true);
  return done;
}

// Whether o must wait for another stream; then that stream's progress comes back here.
bool stream::held_up(op& o) {
  while (!o.after.empty()) {
    const completion_ptr end = std::move(o.after.back());
    o.after.pop_back();
    if (end->done()) continue;
    if (end->then([self = shared_from_this()] {
          {
            const std::lock_guard lock(self->guard_);
            self->busy_ = false;
          }
          self->advance(false);
        }))
      return true;
  }
  return false;
}

// Runs what can run. Short work is done here; work that may take long only by the thread that gave it.
void stream::advance(bool on_callers_thread) {
  for (;;) {
    std::shared_ptr<op> now;
    {
      const std::lock_guard lock(guard_);
      if (busy_ || queue_.empty()) return;
      busy_ = true;
      if (held_up(queue_.front())) return;
      now = std::make_shared<op>(std::move(queue_.front()));
      queue_.pop_front();
    }
    if (now->kernel != nullptr || now->patient || !on_callers_thread) return perform(now);
    now->task();
    {
      const std::lock_guard lock(guard_);
      busy_ = false;
    }
    now->done->finish();
  }
}

// Gives the op to the pool.
void stream::perform(const std::shared_ptr<op>& o) {
  const auto self = shared_from_this();
  try {
    if (o->kernel != nullptr) {
      o->kernel->on_finished = [self, o](launch& l) {
        if (const std::string why = l.failure(); !why.empty()) {
          const std::lock_guard lock(self->guard_);
          if (self->failure_.empty()) self->failure_ = why;
        }
        self->finished(*o);
        l.on_finished = nullptr;
      };
      start(o->kernel);
    } else {
      run_on_threads(
          1, [o](unsigned) { o->task(); }, [self, o] { self->finished(*o); });
    }
  } catch (const std::exception& e) {
    log::error("work on a stream was not started: {}", e.what());
    {
      const std::lock_guard lock(guard_);
      if (failure_.empty()) failure_ = e.what();
    }
    finished(*o);
  }
}

void stream::finished(const op& o) {
  {
    const std::lock_guard lock(guard_);
    busy_ = false;
  }
  o.done->finish();
  advance(false);
}

}  // namespace xio::host_exec
