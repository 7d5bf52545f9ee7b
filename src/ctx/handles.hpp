// SPDX-License-Identifier: MIT
// Numbers that stand for objects at the C boundary. A number is never used twice, so that the number of an object that
// has ended differs from one that was never given out. Any thread may look one up; the world's adds and removes.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "base/error.hpp"

namespace xio {

template <class T>
class handles {
 public:
  // kind and undo are words for sentences: "ctx", "destroyed". world: distinct per world of this process.
  handles(const char* kind, const char* undo, std::uint32_t world) : kind_(kind), undo_(undo), world_(world) {}

  // Objects that only some PEs have made count by themselves: their numbers have this bit, and differ by PE.
  static constexpr std::uint64_t k_alone = std::uint64_t{1} << 31;
  static bool is_alone(std::uint64_t id) { return (id & k_alone) != 0; }

  // The number that the next add() will return.
  std::uint64_t next(bool alone = false) const { return id_of(alone ? (k_alone | last_alone_) + 1 : last_ + 1); }
  std::uint64_t add(std::unique_ptr<T> object, bool alone = false) {
    const std::unique_lock hold(lock_);
    const std::uint64_t id = next(alone);
    ++(alone ? last_alone_ : last_);
    live_.emplace(id, std::move(object));
    return id;
  }

  T& get(std::uint64_t id) const {
    const std::shared_lock hold(lock_);
    if (const auto found = live_.find(id); found != live_.end()) return *found->second;
    if (id == 0) fail(XIO_ERR_ARG, "the {} is empty; give one that was created and not {}", kind_, undo_);
    if (id >> 32 != world_)
      fail(XIO_ERR_ARG, "the {} {:#x} is not of this world; give one that this world created", kind_, id);
    if (serial(id) > (is_alone(id) ? last_alone_ : last_))
      fail(XIO_ERR_ARG, "the {} {:#x} was never created; give one that this world created", kind_, id);
    fail(XIO_ERR_STATE, "the {} {} was {} already; create a new one", kind_, serial(id), undo_);
  }

  // Passes a number over: on other PEs it was that of an object.
  void skip() {
    const std::unique_lock hold(lock_);
    ++last_;
  }
  std::uint64_t id_of(std::uint64_t serial) const { return (std::uint64_t{world_} << 32) | serial; }

  bool has(std::uint64_t id) const { return live_.count(id) != 0; }

  // The object's number among those of this world; equal on every PE for those that all have made.
  static std::uint64_t serial(std::uint64_t id) { return id & (k_alone - 1); }

  std::uint32_t world() const { return world_; }

  void remove(std::uint64_t id) { take(live_.find(id)); }
  void clear() {
    while (!live_.empty()) take(std::prev(live_.end()));
  }
  const auto& live() const { return live_; }

 private:
  using table = std::map<std::uint64_t, std::unique_ptr<T>>;

  // The object ends outside of the lock.
  void take(typename table::iterator at) {
    if (at == live_.end()) return;
    std::unique_ptr<T> ended;
    const std::unique_lock hold(lock_);
    ended = std::move(at->second);
    live_.erase(at);
  }

  const char* kind_;
  const char* undo_;
  std::uint32_t world_;
  std::uint64_t last_ = 0, last_alone_ = 0;
  table live_;
  mutable std::shared_mutex lock_;
};

}  // namespace xio
