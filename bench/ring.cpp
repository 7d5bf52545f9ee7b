// SPDX-License-Identifier: MIT
// How fast kernels post to a ring, how many of them share a doorbell, and how long a post and its completion take:
//   bench/ring [--rounds N] [post] [latency] [primitives]           all three if none is named
//
// post: waves, each a workgroup of its own, post as many ops as half of the ring holds, so that nobody waits for room.
// A ring that a software device reads lies in pinned host memory; "done" is the same ops until all are complete, which
// is the device's speed. A ring that nobody reads may lie in either memory; its entries are checked after each round.
// latency: one lane posts one op and waits for it. Beside it a GPU and a host thread that pass a number to and fro
// through pinned host memory, in the same rounds, also with the releases that the ring's entries need, and where the
// host thread reads a file before it replies: no more than a queue of one thread must do ("its limit"). RDMA: 8 bytes
// that travel in the entry; NVMe: xio_read of 512 bytes of a file in /dev/shm (in parts without the call around them).
// primitives: what the steps are made of. Medians of the rounds. One PE, no launcher.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "ring_rig.hpp"

namespace {

using namespace xio::bench;

constexpr std::uint32_t k_nic_depth = 32768;
constexpr std::uint32_t k_drive_depth = 4096;
constexpr std::uint32_t k_unread_drive_depth = 16384;  // a command id has 16 bits, and there are four for an entry
constexpr unsigned k_most_waves = 4096;
constexpr unsigned k_turns = 500;

struct settings {
  unsigned rounds = 9;
  std::vector<std::string> parts;
  bool wants(const char* part) const {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  }
};

void check(bool ok, const char* what) {
  if (!ok) xio::fail(XIO_ERR_IO, "{} failed", what);
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

double us(std::uint64_t ticks) {
  return static_cast<double>(ticks) * 1e3 / static_cast<double>(xio::gpu::ticks_per_ms());
}

// --- Posting -----------------------------------------------------------------------------------------

struct rates {
  std::vector<double> posts, done, doorbells;
};

xio::dev::ring_state state_of(const ring_target& t) {
  xio::dev::ring_view v;
  xio::dev::ring_state s;
  xio::gpu::copy(&v, t.ring, sizeof v);
  xio::gpu::copy(&s, v.state, sizeof s);
  return s;
}

void one_round(const ring_target& t, unsigned waves, unsigned lanes, unsigned ops, bool wait, wave_times* result,
               rates* into) {
  const auto before = state_of(t);
  check(post_ops(t, waves, lanes, ops / (waves * lanes), wait, result), "the kernel that posts");
  const auto after = state_of(t);
  wave_times all = result[0];
  for (unsigned i = 0; i < waves; ++i) {
    if (result[i].status != XIO_OK) xio::fail(XIO_ERR_TRANSPORT, "an op ended with status {}", result[i].status);
    all.start = std::min(all.start, result[i].start);
    all.posted = std::max(all.posted, result[i].posted);
    all.done = std::max(all.done, result[i].done);
  }
  into->posts.push_back(ops / us(all.posted - all.start));
  into->done.push_back(ops / us(all.done - all.start));
  into->doorbells.push_back(static_cast<double>(after.doorbells - before.doorbells) / ops);
}

template <class Round>
void post_rows(const settings& s, const char* ring, const char* place, bool read, unsigned most_ops, Round&& round) {
  for (unsigned waves = 1; waves <= k_most_waves; waves *= 4) {
    if (waves > most_ops) break;
    const unsigned lanes = std::min<unsigned>(xio::gpu::wave_size(), most_ops / waves);
    rates r;
    for (unsigned i = 0; i <= s.rounds; ++i) {
      rates one;
      round(waves, lanes, &one);
      if (i == 0) continue;  // warms up
      r.posts.push_back(one.posts[0]);
      r.done.push_back(one.done[0]);
      r.doorbells.push_back(one.doorbells[0]);
    }
    const double bells = median(r.doorbells);
    const std::string done = read ? fmt::format("{:.2f}", median(r.done)) : "";
    std::printf("| %s | %s | %s | %u | %u | %.2f | %s | %.1f |\n", ring, place, read ? "yes" : "no", waves, lanes,
                median(r.posts), done.c_str(), bells == 0 ? 0 : 1 / bells);
    std::fflush(stdout);
  }
}

void post_to(const settings& s, const char* name, const ring_target& read, std::uint32_t depth,
             std::uint32_t unread_depth) {
  xio::gpu::buffer result(k_most_waves * sizeof(wave_times), xio::gpu::place::shared);
  auto* times = result.as<wave_times>();
  post_rows(s, name, "host", true, depth / 2, [&](unsigned waves, unsigned lanes, rates* into) {
    one_round(read, waves, lanes, depth / 2, true, times, into);
  });
  for (const auto where : {xio::gpu::place::shared, xio::gpu::place::device}) {
    unread_ring unread(read, unread_depth, where);
    const unsigned ops = unread_depth / 2;
    post_rows(s, name, where == xio::gpu::place::device ? "device" : "host", false, ops,
              [&](unsigned waves, unsigned lanes, rates* into) {
                one_round(unread.target(), waves, lanes, ops, false, times, into);
                unread.check(ops);
                unread.empty();
              });
  }
}

// --- Latency -----------------------------------------------------------------------------------------

// A block's worth of a file in memory, and where to read it to.
class small_file {
 public:
  small_file() : file_(open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)), to_(k_block, xio::gpu::place::shared) {
    check(file_.get() >= 0 && pwrite(file_.get(), to_.data(), k_block, 0) == k_block, "writing a file in /dev/shm");
  }
  bool read() const { return pread(file_.get(), to_.data(), k_block, 0) == k_block; }

 private:
  xio::unique_fd file_;
  xio::gpu::buffer to_;
};

// The least that a ring's op must do, row by row of the table.
enum class turn { word, entry, shared_entry, entry_and_record, entry_and_file, turns };
constexpr unsigned k_kinds_of_turn = static_cast<unsigned>(turn::turns);
constexpr const char* turn_names[] = {"ping-pong", "ping-pong after 64 bytes and a release",
                                      "the same after two atomics in GPU memory, as where several post",
                                      "after 64 bytes and two releases",
                                      "after 64 bytes and a release, and the host reads a file"};
static_assert(std::size(turn_names) == k_kinds_of_turn);
constexpr turn_steps k_steps[] = {{0, 0}, {0, 1}, {2, 1}, {0, 2}, {0, 1}};

// Stores the word that the GPU stored back, at once or after it has read a file as a drive would.
class echo {
 public:
  echo(std::uint64_t* words, const small_file* file)
      : thread_([this, words, file] {
          for (std::uint64_t seen = 0; !stop_.load(std::memory_order_relaxed);) {
            const std::uint64_t now = __atomic_load_n(words, __ATOMIC_RELAXED);
            if (now == seen || (file != nullptr && !file->read())) continue;
            __atomic_store_n(words + 64, seen = now, __ATOMIC_RELEASE);
          }
        }) {}
  ~echo() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  echo(const echo&) = delete;
  echo& operator=(const echo&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

double to_and_fro(turn what, const small_file& file) {
  xio::gpu::buffer words(1 << 18, xio::gpu::place::shared), ticks(8, xio::gpu::place::shared);
  xio::gpu::buffer on_device(4096, xio::gpu::place::device);
  const echo host(words.as<std::uint64_t>(), what == turn::entry_and_file ? &file : nullptr);
  check(ping_pong(words.as<std::uint64_t>(), words.as<std::uint64_t>() + 64, on_device.as<std::uint64_t>(),
                  k_steps[static_cast<unsigned>(what)], k_turns, ticks.as<std::uint64_t>()),
        "the ping-pong's kernel");
  check(*ticks.as<std::uint64_t>() != 0, "the ping-pong's host thread");
  return us(*ticks.as<std::uint64_t>()) / k_turns;
}

op_times lone_ops(const ring_target& t, bool split) {
  xio::gpu::buffer result(sizeof(op_times), xio::gpu::place::shared);
  check(post_and_wait(t, k_turns, split, result.as<op_times>()), "the kernel that posts and waits");
  const op_times all = *result.as<op_times>();
  if (all.status != XIO_OK) xio::fail(XIO_ERR_TRANSPORT, "an op ended with status {}", all.status);
  return all;
}

struct timed_ring {
  const char* name;
  ring_target target;
  turn limit;
  std::vector<double> whole, part[parts];
};

void latencies(const settings& s, std::vector<timed_ring> rings) {
  const small_file file;
  std::vector<double> plain[k_kinds_of_turn];
  for (unsigned i = 0; i <= s.rounds; ++i) {
    for (unsigned k = 0; k < k_kinds_of_turn; ++k) {
      const double one = to_and_fro(static_cast<turn>(k), file);
      if (i != 0) plain[k].push_back(one);
    }
    for (timed_ring& r : rings) {
      const op_times one = lone_ops(r.target, false);
      const op_times split = lone_ops(r.target, true);
      if (i == 0) continue;  // warms up
      r.whole.push_back(us(one.all) / k_turns);
      for (int p = 0; p < parts; ++p) r.part[p].push_back(us(split.part[p]) / k_turns);
    }
  }
  std::puts(
      "\n| us | one op | beside the ping-pong | beside its limit | reserve | fill | announce | wait |\n"
      "|---|---|---|---|---|---|---|---|");
  const double unit = median(plain[0]);
  for (unsigned k = 0; k < k_kinds_of_turn; ++k)
    std::printf("| %s | %.2f | %.2f | | | | | |\n", turn_names[k], median(plain[k]), median(plain[k]) / unit);
  for (const timed_ring& r : rings) {
    const double whole = median(r.whole);
    std::printf("| %s | %.2f | %.2f | %.2f |", r.name, whole, whole / unit,
                whole / median(plain[static_cast<unsigned>(r.limit)]));
    for (const auto& p : r.part) std::printf(" %.2f |", median(p));
    std::puts("");
  }
}

void primitives(const settings& s) {
  xio::gpu::buffer host(1 << 20, xio::gpu::place::shared), device(4096, xio::gpu::place::device);
  xio::gpu::buffer ticks(k_primitives * 8, xio::gpu::place::shared);
  std::vector<double> ns[k_primitives];
  for (unsigned i = 0; i <= s.rounds; ++i) {
    check(time_primitives(host.as<unsigned char>(), device.as<unsigned char>(), k_turns, ticks.as<std::uint64_t>()),
          "the kernel of primitives");
    for (unsigned k = 0; k < k_primitives && i != 0; ++k)
      ns[k].push_back(us(ticks.as<std::uint64_t>()[k]) * 1e3 / k_turns);
  }
  std::puts("\n| one after the other | ns |\n|---|---|");
  for (unsigned k = 0; k < k_primitives; ++k) std::printf("| %s | %.0f |\n", primitive_names[k], median(ns[k]));
}

settings parse(int argc, char** argv) {
  settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--rounds" && i + 1 < argc && std::atoi(argv[i + 1]) > 0) {
      s.rounds = static_cast<unsigned>(std::atoi(argv[++i]));
    } else if (word == "post" || word == "latency" || word == "primitives") {
      s.parts.push_back(word);
    } else {
      std::fprintf(stderr, "bench/ring: '%s' is no argument; give --rounds N, post, latency or primitives\n",
                   word.c_str());
      std::exit(2);
    }
  }
  return s;
}

}  // namespace

int main(int argc, char** argv) try {
  const settings s = parse(argc, argv);
  xio::gpu::init(0);
  const nic_ring nic(xio::model::rdma::mlx5_family(), k_nic_depth),
      recordless(xio::model::rdma::mlx5_nodbr_family(), k_nic_depth);
  const nic_ring neutral(xio::proxy::proxy_family(), k_nic_depth);
  const drive_ring drive(k_drive_depth);
  if (s.wants("post")) {
    std::puts(
        "| ring | its entries | a device reads it | waves | lanes of each | Mposts/s | Mdone/s | ops per doorbell |\n"
        "|---|---|---|---|---|---|---|---|");
    post_to(s, "RDMA", nic.target(), k_nic_depth, k_nic_depth);
    post_to(s, "NVMe", drive.target(), k_drive_depth, k_unread_drive_depth);
  }
  if (s.wants("latency"))
    latencies(s, {{"RDMA", nic.target(), turn::entry_and_record, {}, {}},
                  {"RDMA without a doorbell record", recordless.target(), turn::entry, {}, {}},
                  {"RDMA, neutral entries", neutral.target(), turn::word, {}, {}},
                  {"NVMe", drive.target(), turn::entry_and_file, {}, {}}});
  if (s.wants("primitives")) primitives(s);
  return std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench/ring: %s\n", e.what());
  return 1;
}
