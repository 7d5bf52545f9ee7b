// SPDX-License-Identifier: MIT
#include "gpu/host/capture.hpp"

#include <algorithm>
#include <utility>

namespace xio::host_exec {
namespace {

struct open_captures {
  std::mutex guard;
  std::vector<std::shared_ptr<capture>> all;
};

// Never destroyed: exit handlers call HIP, too.
open_captures& captures() {
  static auto* const one = new open_captures;
  return *one;
}

}  // namespace

hipStreamCaptureMode& capture_mode_of_thread() {
  static thread_local hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  return mode;
}

std::shared_ptr<capture> capture::begin(const std::shared_ptr<stream>& origin, hipStreamCaptureMode mode) {
  auto c = std::make_shared<capture>();
  c->origin_ = origin;
  c->mode_ = mode;
  c->thread_ = std::this_thread::get_id();
  c->follow(origin, {});
  open_captures& r = captures();
  const std::lock_guard lock(r.guard);
  r.all.push_back(c);
  return c;
}

hipError_t capture::end(const stream& origin, std::vector<work>* graph) {
  if (&origin != origin_.get()) return hipErrorStreamCaptureUnmatched;
  if (mode_ != hipStreamCaptureModeRelaxed && thread_ != std::this_thread::get_id())
    return hipErrorStreamCaptureWrongThread;
  {
    open_captures& r = captures();
    const std::lock_guard lock(r.guard);
    std::erase_if(r.all, [&](const auto& c) { return c.get() == this; });
  }
  const std::lock_guard lock(guard_);
  for (const auto& s : streams_) s->set_capture(nullptr);
  if (!valid_) return hipErrorStreamCaptureInvalidated;
  // Work of another stream that the origin does not wait for.
  frontier& joined = reached_[&origin];
  for (const auto& [s, own] : reached_)
    if (joined[s] < own.at(s)) return hipErrorStreamCaptureUnjoined;
  *graph = std::move(graph_);
  return hipSuccess;
}

void capture::record(const stream* on, work w) {
  const std::lock_guard lock(guard_);
  ++reached_[on][on];
  graph_.push_back(std::move(w));
}

frontier capture::reached(const stream* by) const {
  const std::lock_guard lock(guard_);
  return reached_.at(by);
}

void capture::follow(const std::shared_ptr<stream>& joins, const frontier& before) {
  const std::lock_guard lock(guard_);
  frontier& own = reached_[joins.get()];
  if (own.count(joins.get()) == 0) {
    own[joins.get()] = 0;
    streams_.push_back(joins);
  }
  for (const auto& [s, count] : before) own[s] = std::max(own[s], count);
}

void capture::invalidate() {
  const std::lock_guard lock(guard_);
  valid_ = false;
}

bool capture::is_valid() const {
  const std::lock_guard lock(guard_);
  return valid_;
}

template <class Affected>
bool capture::spoil(Affected&& affected) {
  open_captures& r = captures();
  const std::lock_guard lock(r.guard);
  bool any = false;
  for (const auto& c : r.all) {
    const std::lock_guard own(c->guard_);
    if (!affected(*c)) continue;
    c->valid_ = false;
    any = true;
  }
  return any;
}

bool capture::spoil_by_unsafe_call() {
  const hipStreamCaptureMode mine = capture_mode_of_thread();
  if (mine == hipStreamCaptureModeRelaxed) return false;
  return spoil([&](const capture& c) {
    if (c.thread_ == std::this_thread::get_id()) return c.mode_ != hipStreamCaptureModeRelaxed;
    return mine == hipStreamCaptureModeGlobal && c.mode_ == hipStreamCaptureModeGlobal;
  });
}

bool capture::spoil_by_default_stream() {
  return spoil(
      [](const capture& c) { return std::ranges::any_of(c.streams_, [](const auto& s) { return s->blocking(); }); });
}

}  // namespace xio::host_exec
