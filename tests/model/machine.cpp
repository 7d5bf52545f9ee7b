// SPDX-License-Identifier: MIT
// The threads that run software devices: they take turns while there are devices, and no processor time without.
#include "progress/machine.hpp"

#include <dirent.h>
#include <sys/eventfd.h>

#include "../gtest.hpp"

using namespace xio::progress;
using namespace std::chrono_literals;

namespace {

struct counter : device {
  bool poll() override {
    ++turns;
    return false;
  }
  std::atomic<int> turns{0};
};

// How often threads of this process other than the caller went to sleep so far.
long sleeps_of_others() {
  long sum = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return -1;
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.' || std::atol(task->d_name) == gettid()) continue;
    std::ifstream status("/proc/self/task/" + std::string(task->d_name) + "/status");
    for (std::string line; std::getline(status, line);) {
      const std::string key = "voluntary_ctxt_switches:";
      if (line.rfind(key, 0) == 0) sum += std::atol(line.c_str() + key.size());
    }
  }
  closedir(tasks);
  return sum;
}

bool turns_pass(const counter& c, int turns, int from) {
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (c.turns - from < turns && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  return c.turns - from >= turns;
}
bool turns_pass(const counter& c, int turns) { return turns_pass(c, turns, c.turns); }

// A sanitizer's own thread may wake a few times.
constexpr long k_still = 20;

// Waits until threads that had just been at work lie still, then says how often they woke in 0.2 s.
long wakings() {
  std::this_thread::sleep_for(50ms);
  const long before = sleeps_of_others();
  std::this_thread::sleep_for(200ms);
  return sleeps_of_others() - before;
}

// A drive in a virtual machine was half as fast while the empty machine beside it woke 5000 times a second.
TEST(machine, does_not_wake_without_devices) {
  machine m(3);
  EXPECT_LE(wakings(), k_still);
}

TEST(machine, wakes_for_a_device_and_sleeps_when_it_is_gone) {
  machine m(2);
  for (int round = 0; round < 3; ++round) {
    EXPECT_LE(wakings(), k_still) << round;
    counter c;
    m.add(&c);
    EXPECT_TRUE(turns_pass(c, 10)) << round;
    m.remove(&c);
    const int last = c.turns;
    EXPECT_LE(wakings(), k_still) << round;
    EXPECT_EQ(c.turns, last) << round;
  }
}

TEST(machine, runs_the_devices_that_are_left) {
  machine m(2);
  counter a, b, c;
  m.add(&a);
  m.add(&b);
  m.add(&c);
  m.remove(&a);
  EXPECT_TRUE(turns_pass(b, 10));
  EXPECT_TRUE(turns_pass(c, 10));
  m.remove(&b);
  EXPECT_TRUE(turns_pass(c, 10));
  m.remove(&c);
}

// As a NIC's does whose copies fail, because a kernel has died of a fault.
struct breaks : counter {
  bool poll() override {
    if (++turns == 3) throw std::runtime_error("a copy of 64 bytes failed");
    return true;
  }
};

TEST(machine, goes_on_without_a_device_that_throws) {
  machine m(1);
  counter before, behind;
  breaks broken;
  m.add(&before);
  m.add(&broken);
  m.add(&behind);
  EXPECT_TRUE(turns_pass(before, 100));
  EXPECT_TRUE(turns_pass(behind, 100));
  EXPECT_EQ(broken.turns, 3);
  m.remove(&broken);
  m.remove(&before);
  m.remove(&behind);
  breaks alone;
  m.add(&alone);
  EXPECT_TRUE(turns_pass(alone, 3, 0));  // all that it makes
  EXPECT_LE(wakings(), k_still);
  m.remove(&alone);
}

// A doorbell, and what a NIC has beside it: a descriptor.
struct mailbox : counter {
  explicit mailbox(int fd = -1) : fd_(fd) {}
  bool poll() override {
    ++turns;
    std::uint64_t count;
    if (fd_ >= 0 && read(fd_, &count, sizeof count) > 0) seen += static_cast<unsigned>(count);
    return rung != 0 && (seen += rung.exchange(0)) != 0;
  }
  bool at_rest(xio::sleeper::descriptors& found) override {
    if (fd_ >= 0) found.push_back({fd_, POLLIN, 0});
    // Work that is given now must wake the thread that is about to sleep.
    for (const auto end = std::chrono::steady_clock::now() + linger.load(); std::chrono::steady_clock::now() < end;) {
    }
    return rests;
  }
  bool sees(unsigned count, std::chrono::milliseconds limit) const {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (seen < count && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(20us);
    return seen >= count;
  }
  std::atomic<unsigned> rung{0}, seen{0};
  std::atomic<std::chrono::microseconds> linger{0us};
  std::atomic<bool> rests{true};

 private:
  const int fd_;
};

// Also where this program has no kernels that look at a word.
class sleeping_machine : public testing::Test {
 public:
  ~sleeping_machine() override { xio::let_sleep(before_); }

 private:
  const bool before_ = xio::let_sleep(true);
};

TEST_F(sleeping_machine, sleeps_while_its_devices_rest) {
  mailbox box;
  machine m(1);
  m.add(&box);
  std::this_thread::sleep_for(100ms);
  EXPECT_LE(wakings(), k_still);
  const int before = box.turns;
  std::this_thread::sleep_for(500ms);
  EXPECT_LE(box.turns - before, 20);
  box.rests = false;
  EXPECT_TRUE(turns_pass(box, 200)) << "a device that does not rest is polled";
  m.remove(&box);
}

// How late a giver is seen that the sleeper does not learn of: k_rest. Half of that is allowed, and some that are slow.
void expect_seen(mailbox& box, int rounds, const std::function<void(unsigned)>& ring) {
  machine m(1);
  m.add(&box);
  int late = 0;
  for (unsigned round = 1; round <= static_cast<unsigned>(rounds); ++round) {
    ring(round);
    late += !box.sees(round, 100ms);
    ASSERT_TRUE(box.sees(round, 10s));
  }
  EXPECT_LE(late, rounds / 20);
  m.remove(&box);
}

TEST_F(sleeping_machine, wakes_for_every_doorbell) {
  mailbox box;
  box.linger = 2ms;
  expect_seen(box, 200, [&](unsigned round) {
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 80)));
    box.rung = 1;
    xio::wake_sleepers();
  });
}

TEST_F(sleeping_machine, wakes_for_a_descriptor) {
  const xio::unique_fd fd(eventfd(0, EFD_NONBLOCK));
  mailbox box(fd.get());
  expect_seen(box, 20, [&](unsigned) {
    std::this_thread::sleep_for(20ms);
    ASSERT_EQ(eventfd_write(fd.get(), 1), 0);
  });
}

TEST(machine, ends_from_every_state) {
  for (int i = 0; i < 200; ++i) {
    counter c;
    machine m(2);
    if (i % 2 == 0) continue;
    m.add(&c);
    m.remove(&c);
  }
}

}  // namespace
