// SPDX-License-Identifier: MIT
#include "amdgpu/queues/scheduler.hpp"

#include <pthread.h>
#include <signal.h>

namespace amdgpu {
namespace {

using namespace std::chrono_literals;

// A thread that finds nothing to do sleeps, longer each time.
constexpr auto k_first_sleep = 10us, k_longest_sleep = 500us, k_unneeded = 100000us;

// Workgroup and queue numbers of a dispatch are found by its queue's address.
std::uint64_t queue_of(const dispatch& d) { return d.how.queue; }

}  // namespace

scheduler::scheduler(const settings& s, gate& turns, const std::vector<page_table>& tables, events& happenings,
                     group_maker make)
    : settings_(s),
      turns_(turns),
      tables_(tables),
      happenings_(happenings),
      make_(std::move(make)),
      engines_(s, tables, happenings) {
  for (unsigned gpu = 0; s.memory == "adversary" && gpu < s.nodes(); ++gpu)
    l2_.push_back(std::make_unique<l2_caches>(s.seed + gpu, s.hdp != 0,
                                              l2_rules{s.target == "gfx942", s.l2s(), s.target == "gfx1100"}));
  for (unsigned gpu = 0; s.target == "gfx1100" && gpu < l2_.size(); ++gpu)
    l1_.push_back(std::make_unique<shader_arrays>(tables[gpu], l2_[gpu]->of_workgroup(0), s.seed + gpu));
}

scheduler::~scheduler() { stop(); }

void scheduler::stop() {
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wanted_.notify_all();
  for (std::thread& t : threads_)
    if (t.joinable()) t.join();
  threads_.clear();
}

void scheduler::start_threads() {
  if (!threads_.empty()) return;
  // The program's signals are its own threads' business.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  for (std::uint64_t i = 0; i < settings_.threads; ++i) threads_.emplace_back([this] { work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int scheduler::add_aql(const queue_request& r, std::uint32_t* id) {
  const std::lock_guard hold(front_);
  *id = next_id_++;
  queues_.emplace(*id, std::make_unique<aql_queue>(*id, r));
  start_threads();
  return 0;
}

int scheduler::add_sdma(const queue_request& r, std::uint32_t* id) {
  const std::lock_guard hold(front_);
  *id = next_id_++;
  engines_.add(*id, r);
  start_threads();
  return 0;
}

int scheduler::remove(std::uint32_t id) {
  const std::lock_guard hold(front_);
  if (engines_.remove(id)) return 0;
  const auto found = queues_.find(id);
  if (found == queues_.end()) return EINVAL;
  found->second->kill();
  std::unique_lock inner(lock_);
  const auto is_dead = [](const task& t) { return t.of->dead.load(); };
  std::erase_if(ready_, is_dead);
  // A workgroup that runs ends its slice first.
  wanted_.wait(inner, [&] { return std::ranges::none_of(running_, [](const dispatch* d) { return d->dead.load(); }); });
  std::erase_if(ended_, [&](const ended_task& e) { return is_dead(e.what); });
  queues_.erase(found);
  return 0;
}

int scheduler::suspend(std::uint32_t id, bool is) {
  const std::lock_guard hold(front_);
  if (engines_.knows(id)) return 0;
  const auto found = queues_.find(id);
  if (found == queues_.end()) return EFAULT;
  found->second->suspend(is);
  return 0;
}

bool scheduler::knows(std::uint32_t id) {
  const std::lock_guard hold(front_);
  return queues_.count(id) != 0 || engines_.knows(id);
}

aql_queue::surroundings scheduler::around(unsigned gpu) {
  const std::uint64_t seed = settings_.memory == "adversary" ? settings_.seed : 0;
  return {tables_[gpu],
          happenings_,
          make_,
          *this,
          settings_.compute_units,
          settings_.threads,
          settings_.counts,
          settings_.times,
          seed,
          settings_.unwritten != 0,
          l2_.empty() ? nullptr : l2_[gpu].get(),
          l1_.empty() ? nullptr : l1_[gpu].get(),
          target_of(settings_.target),
          settings_.l2s()};
}

void scheduler::mapped(unsigned gpu, const mapping& m, bool is) {
  engines_.mapped(gpu, m, is);
  if (l2_.empty()) return;
  l2_caches& l2 = *l2_[gpu];
  if (!is) l2.forget(m.host, m.bytes);
  if (m.where == mapping::place::registers) l2.flush_register(is ? reinterpret_cast<std::uint32_t*>(m.host) : nullptr);
}

void scheduler::run(task&& t) {
  {
    const std::lock_guard hold(lock_);
    ready_.push_back(std::move(t));
  }
  wanted_.notify_one();
}

void scheduler::drain_ended() {
  std::vector<ended_task> now;
  {
    const std::lock_guard hold(lock_);
    now.swap(ended_);
  }
  for (ended_task& e : now)
    for (auto& [id, q] : queues_)
      if (q->is(queue_of(*e.what.of))) {
        q->ended(around(q->gpu()), std::move(e.what), e.how);
        break;
      }
}

bool scheduler::look_at_queues() {
  const std::unique_lock front(front_, std::try_to_lock);
  if (!front) return false;
  const turn within(turns_);
  drain_ended();
  bool worked = false;
  for (auto& [id, q] : queues_) worked |= q->advance(around(q->gpu()));
  if (!engines_.poll()) return worked;
  // Copy engines of a GPU do not pass its host data path.
  for (auto& l2 : l2_) l2->flush_host_path();
  return true;
}

bool scheduler::run_one(bool* was_asleep) {
  task t;
  {
    const std::lock_guard hold(lock_);
    if (ready_.empty()) return false;
    t = std::move(ready_.front());
    ready_.pop_front();
    if (t.of->dead) return true;
    running_.push_back(t.of.get());
  }
  group::state how;
  {
    const turn within(turns_);
    how = t.waves->run(static_cast<unsigned>(settings_.slice));
    *was_asleep = how == group::state::running && t.waves->asleep();
  }
  const std::lock_guard hold(lock_);
  running_.erase(std::ranges::find(running_, t.of.get()));
  if (t.of->dead) {
    wanted_.notify_all();  // remove() may wait for it
  } else if (how == group::state::running) {
    ready_.push_back(std::move(t));
    if (ready_.size() > 1) wanted_.notify_one();
  } else {
    ended_.push_back({std::move(t), how});
  }
  return true;
}

void scheduler::work() {
  pthread_setname_np(pthread_self(), "amdgpu");
  auto pause = k_first_sleep;
  std::size_t asleep = 0;
  for (;;) {
    const bool worked = look_at_queues();
    bool was_asleep = false;
    const bool ran = run_one(&was_asleep);
    asleep = was_asleep ? asleep + 1 : 0;
    std::unique_lock hold(lock_);
    if (stop_) return;
    if (worked || (ran && asleep <= ready_.size())) {
      pause = k_first_sleep;
      continue;
    }
    // Nothing to do, or all that could run waits for somebody else: another process, perhaps.
    asleep = 0;
    if (watched_ && ready_.empty()) {
      wanted_.wait_for(hold, k_unneeded);
      continue;
    }
    watched_ = true;
    wanted_.wait_for(hold, pause);
    watched_ = false;
    pause = std::min<std::chrono::microseconds>(2 * pause, k_longest_sleep);
  }
}

}  // namespace amdgpu
