// SPDX-License-Identifier: MIT
#include "model/sdma/engine.hpp"

#include "model/sdma/queue.hpp"

namespace xio::model::sdma {
namespace {

std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

}  // namespace

engine::engine(const payload_agent& payload, wire::generation generation, std::uint64_t seed, std::uint32_t granule)
    : payload_(payload), generation_(generation), granule_(granule), seed_(seed), clock_(nanoseconds) {}

engine::~engine() = default;

bool engine::map(void* base, std::size_t bytes, memory_kind kind) {
  const auto hold = visit();
  return map_.add(reinterpret_cast<std::uint64_t>(base), bytes, kind);
}

bool engine::unmap(void* base) {
  const auto hold = visit();
  return map_.remove(reinterpret_cast<std::uint64_t>(base));
}

void engine::inject(move_faults faults) {
  const auto hold = visit();
  faults_ = std::move(faults);
}

void engine::listen(std::function<void(std::uint32_t)> trap) {
  const auto hold = visit();
  trap_ = std::move(trap);
}

void engine::tell_time_by(std::uint64_t (*clock)()) {
  const auto hold = visit();
  clock_ = clock;
}

std::uint32_t engine::add_queue(const queue_memory& memory) {
  const auto hold = visit();
  // Every queue reorders in its own way, the same way in every run.
  seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
  queues_.push_back(std::make_unique<queue>(next_number_, memory, seed_, faults_));
  return next_number_++;
}

void engine::remove_queue(std::uint32_t number) {
  const auto hold = visit();
  std::erase_if(queues_, [&](const auto& q) { return q->number() == number; });
}

bool engine::at_rest(sleeper::descriptors&) {
  const std::lock_guard hold(turns_.lock());
  return std::ranges::all_of(queues_, [](const auto& q) { return q->at_rest(); });
}

bool engine::poll() {
  if (turns_.visited()) return false;
  std::unique_lock hold(turns_.lock(), std::try_to_lock);
  if (!hold) return false;
  const surroundings around{payload_, map_, generation_, granule_, events_, local_time_, trap_, clock_};
  bool worked = false;
  for (auto& q : queues_) worked |= q->turn(around);
  return worked;
}

}  // namespace xio::model::sdma
