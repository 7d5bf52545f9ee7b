// SPDX-License-Identifier: MIT
// test-ep: round trips between the GPU and threads of the host, which play the device. No engine is involved: it shows
// that GPU and host see each other's stores, in the memory that --memory-mode asks for.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/error.hpp"
#include "base/options.hpp"
#include "tools/command_line.hpp"
#include "tools/xio-tester/echo_kernels.hpp"
#include "tools/xio-tester/run.hpp"

namespace xio::tester {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::int64_t k_delay_max_ns = 10'000'000'000;  // nothing ends before a reply that is under way

template <class T>
T get(const T* p) {
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
template <class T>
void put(T* p, T value) {
  __atomic_store_n(p, value, __ATOMIC_RELEASE);
}

// The memory of all queues, and where each part of it lies.
class echo_memory {
 public:
  echo_memory(const shared_settings& shared, const echo_settings& s)
      : entries_(std::max<std::uint64_t>(s.doorbell, 1)),
        lanes_(static_cast<std::uint64_t>(shared.threads)),
        requests_(lanes_ * entries_ * sizeof(echo_request), where(shared, 1)),
        replies_(lanes_ * entries_ * sizeof(echo_reply), where(shared, 2)),
        doorbells_(lanes_ * k_line, where(shared, 4)),
        queues_(lanes_ * sizeof(echo_queue), gpu::place::shared) {
    for (std::uint64_t i = 0; i < lanes_; ++i)
      queue(i) = {requests_.as<echo_request>() + i * entries_, replies_.as<echo_reply>() + i * entries_,
                  s.doorbell == 0 ? nullptr : doorbells_.as<u64>() + i * (k_line / sizeof(u64)), entries_};
  }
  echo_queue& queue(std::uint64_t i) { return queues_.as<echo_queue>()[i]; }
  echo_queue* all() { return queues_.as<echo_queue>(); }

 private:
  static constexpr std::uint64_t k_line = 128;

  static gpu::place where(const shared_settings& shared, int bit) {
    if ((shared.memory_mode & bit) == 0) return gpu::place::shared;
    if (!gpu::host_reads_device_memory())
      fail(XIO_ERR_UNSUPPORTED,
           "test-ep: --memory-mode {} puts what threads of the host read into GPU memory, which they cannot reach on "
           "this platform; leave out {}",
           shared.memory_mode, bit);
    return gpu::place::device;
  }

  std::uint64_t entries_, lanes_;
  gpu::buffer requests_, replies_, doorbells_, queues_;
};

// Fixed if negative, else random below it.
class artificial_delay {
 public:
  artificial_delay(std::int64_t ns, std::uint64_t seed) : ns_(ns), state_(mix(seed)) {}
  void pass() {
    if (ns_ == 0) return;
    state_ = mix(state_ + 1);
    const std::uint64_t ns = ns_ < 0 ? 0 - static_cast<std::uint64_t>(ns_) : state_ % static_cast<std::uint64_t>(ns_);
    const auto end = clock::now() + std::chrono::nanoseconds(ns);
    if (ns > 100000) std::this_thread::sleep_until(end);
    while (clock::now() < end) std::this_thread::yield();
  }

 private:
  std::int64_t ns_;
  std::uint64_t state_;
};

// Acts as the device: replies to one queue's requests until *stop is set.
void reply(const echo_queue& q, std::int64_t delay_ns, std::uint64_t seed, const std::uint32_t* stop) {
  artificial_delay delay(delay_ns, seed);
  for (u64 number = 1;; ++number) {
    const u64 at = (number - 1) & (q.entries - 1);
    const echo_request& r = q.requests[at];
    while (q.doorbell != nullptr ? get(q.doorbell) < number : get(&r.number) != number) {
      if (get(stop) != 0) return;
      std::this_thread::yield();
    }
    u64 sum = 0;
    for (const u64& word : r.words) sum += __atomic_load_n(&word, __ATOMIC_RELAXED);
    // Behind a doorbell the request must be there already: a stale one gets a wrong reply, which is seen.
    if (get(&r.number) != number) sum = ~sum;
    delay.pass();
    __atomic_store_n(&q.replies[at].check, sum, __ATOMIC_RELAXED);
    put(&q.replies[at].number, number);
  }
}

// Does by a thread of the host what the kernel does: --emulate.
class asker {
 public:
  asker(const echo_job& job, std::uint64_t lane)
      : job_(job),
        q_(job.queues[lane]),
        mine_(job.tally.lanes[lane]),
        first_op_(lane * job.rounds),
        p_(pattern::of(job.seed, sizeof(echo_request::words))) {}

  void ask_all() {
    const u64 window = q_.doorbell != nullptr ? q_.entries : 1;
    mine_.begin(now());
    for (u64 at = 0; at < job_.rounds && mine_.status == XIO_OK && get(job_.tally.stop) == 0; at += window) {
      const u64 end = std::min(at + window, job_.rounds), start = now();
      for (u64 number = at + 1; number <= end; ++number) post(number);
      for (u64 number = at + 1; number <= end && take(number, start); ++number) {
      }
    }
    mine_.ended = now();
  }

 private:
  u64 now() const {
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch()).count();
    return static_cast<u64>(static_cast<double>(ns) * ticks_per_ns_);
  }

  void post(u64 number) {
    echo_request& r = q_.requests[(number - 1) & (q_.entries - 1)];
    p_.words(number, sizeof r.words, [&](u64 at, u64 x, u64) {
      __atomic_store_n(&r.words[at / 8], x, __ATOMIC_RELAXED);
      return true;
    });
    put(&r.number, number);
    if (q_.doorbell != nullptr) put(q_.doorbell, number);
  }

  // False if there is no reply.
  bool take(u64 number, u64 start) {
    const echo_reply& a = q_.replies[(number - 1) & (q_.entries - 1)];
    while (get(&a.number) != number) {
      if (get(job_.tally.stop) != 0) return false;
      if (job_.timeout_ticks != 0 && now() - start > job_.timeout_ticks) {
        mine_.fail(XIO_ERR_TIMEOUT, number - 1);
        return false;
      }
      std::this_thread::yield();
    }
    u64 sum = 0;
    p_.words(number, sizeof(echo_request::words), [&](u64, u64 x, u64) {
      sum += x;
      return true;
    });
    const bool right = __atomic_load_n(&a.check, __ATOMIC_RELAXED) == sum;
    mine_.note(right ? verdict::good : verdict::corrupt, number, number);
    job_.tally.keep(mine_, first_op_ + number - 1, now() - start);
    __atomic_store_n(&mine_.done, mine_.done + 1, __ATOMIC_RELAXED);
    return true;
  }

  const echo_job& job_;
  const echo_queue q_;
  lane_record& mine_;
  const u64 first_op_;
  const pattern p_;
  const double ticks_per_ns_ = static_cast<double>(gpu::ticks_per_ms()) * 1e-6;
};

// Threads of the host that end when their word says so, also when something is thrown in between.
class workers {
 public:
  workers() : stop_(sizeof(std::uint32_t), gpu::place::shared) {}
  ~workers() {
    put(stop(), std::uint32_t{1});
    for (auto& t : threads_) t.join();
  }
  std::uint32_t* stop() { return stop_.as<std::uint32_t>(); }
  template <class Body>
  void add(Body&& body) {
    threads_.emplace_back(std::forward<Body>(body));
  }

 private:
  gpu::buffer stop_;
  std::vector<std::thread> threads_;
};

}  // namespace

tools::command add_echo(tools::command& app, echo_settings& s) {
  tools::command at = app.subcommand("test-ep", "round trips between GPU and host through memory; needs no device");
  at.number("-n,--iterations", s.iterations, "requests of each thread");
  at.number("--doorbell", s.doorbell, "entries of a queue with a doorbell, a power of two; 0: no doorbell");
  at.flag("--emulate", s.emulate, "threads of the host ask, and not the GPU");
  at.flag("--verify", s.verify, "check every request and reply");
  at.number("--seed", s.seed, "of the requests' pattern");
  return at;
}

std::string wrong_echo(const tools::command&, const shared_settings& shared, echo_settings& s) {
  if (shared.delay_ns < -k_delay_max_ns || shared.delay_ns > k_delay_max_ns)
    return fmt::format("--delay {} cannot be; give {} nanoseconds at most, with or without a minus", shared.delay_ns,
                       k_delay_max_ns);
  if (s.iterations == 0 || s.iterations > k_stamps_max * 1024)
    return fmt::format("--iterations is {}; give 1 .. {}", s.iterations, k_stamps_max * 1024);
  if (s.doorbell > 65536 || (s.doorbell & (s.doorbell - 1)) != 0)
    return fmt::format("--doorbell {} is no power of two up to 65536", s.doorbell);
  return "";
}

int run_echo(const shared_settings& shared, const echo_settings& s) {
  const options o = options::from_environment();
  gpu::init(0);
  echo_memory memory(shared, s);
  const auto lanes = static_cast<std::uint64_t>(shared.threads);
  const bool verify = s.verify || s.emulate;
  run r(shared, {"test-ep", lanes, lanes * s.iterations, 0, "threads of the host"});
  const echo_job job{
      r.view(),        memory.all(), s.iterations, static_cast<u64>(s.seed), o.timeout_ms * gpu::ticks_per_ms(),
      verify ? 1u : 0u};
  std::printf("test-ep: %d thread%s, %s, %s asks, threads of the host reply, memory mode %d\n", shared.threads,
              shared.threads == 1 ? "" : "s",
              s.doorbell == 0 ? "no doorbell" : fmt::format("doorbell and {} entries", s.doorbell).c_str(),
              s.emulate ? "the host" : fmt::format("the GPU ({})", gpu::name()).c_str(), shared.memory_mode);
  r.begin();
  {
    workers repliers;
    for (std::uint64_t i = 0; i < lanes; ++i)
      repliers.add([&, i, stop = repliers.stop()] { reply(memory.queue(i), shared.delay_ns, i + 1, stop); });
    if (s.emulate) {
      std::atomic<std::uint64_t> ended{0};
      workers asking;
      for (std::uint64_t i = 0; i < lanes; ++i)
        asking.add([&job, &ended, i] {
          asker(job, i).ask_all();
          ++ended;
        });
      r.finish(nullptr, [&] { return ended == lanes; });
    } else {
      r.finish(launch_echo(job, static_cast<unsigned>(lanes)));
    }
  }
  if (!r.print(verify)) return k_exit_failed;
  return was_interrupted() ? k_exit_interrupted : 0;
}

}  // namespace xio::tester
