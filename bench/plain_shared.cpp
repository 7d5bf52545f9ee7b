// SPDX-License-Identifier: MIT
// What shared memory gives to small collectives of several processes, each on a core of its own while there are enough:
// plain loads and stores that do no more than the op must. No library, no team, no checks, no deadlines; beside
// xio-perf on the host platform it says how much of the limit is reached.
//   plain_shared [PES [TIMES]]      2 PEs, 500 calls, unless given
// A broadcast is timed twice: with every PE hearing of every other, which is what XIO's members need to report one that
// is dead or in another call, and with a root that waits for nobody while its ring has room. Prints the rows of PE 0.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int k_most_pes = 16;
constexpr uint64_t k_ring = 64;  // broadcasts that the root may be ahead
constexpr int k_words = 2;       // of four bytes of data, each beside the number of its call

struct alignas(128) line {
  uint64_t word[16];
};
struct memory {
  line message[2][k_most_pes][k_most_pes];  // of calls that take turns, by reader and writer
  line ring[k_most_pes][k_ring];            // by reader
  line read[k_most_pes];                    // what this reader has taken, for the root
};

void check(bool good, const char* subject) {
  if (good) return;
  std::perror(subject);
  std::_Exit(1);
}

uint64_t load(const uint64_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
void store(uint64_t* at, uint64_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

double now_us() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

struct process {
  memory* shared;
  int me, pes;
  bool shares_core;
  uint64_t calls = 0, broadcasts = 0;

  template <class Done>
  void wait(const Done& done) const {
    while (!done())
      if (shares_core) sched_yield();
  }

  // The number of this call to everybody, with data behind it where `sends`; and theirs.
  void exchange(bool sends, int from) {
    const uint64_t number = ++calls;
    auto* at = shared->message[number & 1];
    for (int k = 1; k < pes; ++k) {
      uint64_t* out = at[(me + k) % pes][me].word;
      for (int w = 1; sends && w <= k_words; ++w) store(out + w, number << 32 | static_cast<uint64_t>(w));
      store(out, number);
    }
    for (int k = 1; k < pes; ++k) {
      const int other = (me + k) % pes;
      const uint64_t* in = at[me][other].word;
      wait([&] { return load(in) == number; });
      if (other == from) take(in + 1, number);
    }
  }
  void sync() { exchange(false, -1); }
  void broadcast() { exchange(me == 0, 0); }

  void take(const uint64_t* in, uint64_t number) const {
    for (int w = 0; w < k_words; ++w) {
      wait([&] { return load(in + w) >> 32 == number; });
      check(static_cast<uint32_t>(load(in + w)) == static_cast<uint32_t>(w + 1), "plain_shared: the data");
    }
  }

  void broadcast_ahead() {
    const uint64_t number = ++broadcasts, place = number % k_ring;
    if (me != 0) {
      take(shared->ring[me][place].word, number);
      if (number % (k_ring / 2) == 0) store(shared->read[me].word, number);
      return;
    }
    for (int to = 1; to < pes; ++to) {
      if (number % (k_ring / 2) == 0) wait([&] { return load(shared->read[to].word) + k_ring / 2 >= number; });
      for (int w = 0; w < k_words; ++w)
        store(shared->ring[to][place].word + w, number << 32 | static_cast<uint64_t>(w + 1));
    }
  }

  template <class Call>
  void row(const char* name, int bytes, int times, const Call& call) {
    for (int i = 0; i < times / 10 + 1; ++i) call();
    sync();
    const double begin = now_us();
    for (int i = 0; i < times; ++i) call();
    const double took = now_us() - begin;
    sync();
    if (me == 0) std::printf("| %s | %d | %.2f |\n", name, bytes, took / times);
  }
};

// The i-th of the cores that this program may use.
int core_of(int i, const cpu_set_t& usable) {
  int cpu = 0;
  for (i %= CPU_COUNT(&usable);; ++cpu)
    if (CPU_ISSET(cpu, &usable) && i-- == 0) return cpu;
}

}  // namespace

int main(int argc, char** argv) {
  const int pes = argc > 1 ? std::atoi(argv[1]) : 2, times = argc > 2 ? std::atoi(argv[2]) : 500;
  if (pes < 2 || pes > k_most_pes || times < 1) {
    std::fprintf(stderr, "plain_shared [PES [TIMES]]: 2 to %d PEs, times from 1 up\n", k_most_pes);
    return 2;
  }
  void* block = mmap(nullptr, sizeof(memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  check(block != MAP_FAILED, "plain_shared: mmap");
  cpu_set_t usable;
  check(sched_getaffinity(0, sizeof usable, &usable) == 0, "plain_shared: sched_getaffinity");
  int me = 0;
  std::vector<pid_t> others;
  for (int pe = 1; pe < pes && me == 0; ++pe) {
    const pid_t child = fork();
    check(child >= 0, "plain_shared: fork");
    if (child == 0) me = pe;
    others.push_back(child);
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core_of(me, usable), &one);
  check(sched_setaffinity(0, sizeof one, &one) == 0, "plain_shared: sched_setaffinity");
  process self{static_cast<memory*>(block), me, pes, pes > CPU_COUNT(&usable)};
  self.row("broadcast", 4 * k_words, times, [&] { self.broadcast(); });
  self.row("broadcast by a root that waits for nobody", 4 * k_words, times, [&] { self.broadcast_ahead(); });
  self.row("sync", 0, times, [&] { self.sync(); });
  if (me != 0) std::_Exit(0);
  int failed = 0;
  for (const pid_t child : others) {
    int status = 0;
    check(waitpid(child, &status, 0) == child, "plain_shared: waitpid");
    failed |= status;
  }
  return failed != 0 || std::fflush(stdout) != 0 ? 1 : 0;
}
