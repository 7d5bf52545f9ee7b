// SPDX-License-Identifier: MIT
// sdma-ep: copies by a copy engine that a kernel drives.

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "tools/command_line.hpp"
#include "tools/gpus.hpp"
#include "tools/xio-tester/run.hpp"
#include "tools/xio-tester/sdma_kernels.hpp"
#include "tools/xio-tester/world.hpp"

namespace xio::tester {
namespace {

constexpr std::uint64_t k_copy_max = std::uint64_t{16} << 30;
constexpr std::uint64_t k_iterations_max = std::uint64_t{1} << 40;
constexpr std::uint64_t k_places_max = std::uint64_t{64} << 20;

void works(const char* wrong, const char* what) {
  if (wrong != nullptr) fail(XIO_ERR_NO_MEMORY, "sdma-ep: {}: {}", what, wrong);
}

// A buffer of a device, or pinned host memory, that a link knows.
class area {
 public:
  area(xio_sdma_link_t* link, int device, bool on_host, std::uint64_t bytes) : on_host_(on_host) {
    works(on_host ? allocate_pinned(bytes, &base_) : allocate_on(device, bytes, &base_), "no buffer");
    if (const xio_status_t status = xio_sdma_map(link, base_, bytes); status != XIO_OK) {
      release();
      throw error(status, xio_last_error());
    }
  }
  ~area() { release(); }
  area& operator=(area&&) = delete;
  u8* base() const { return static_cast<u8*>(base_); }

 private:
  void release() {
    if (on_host_)
      free_pinned(base_);
    else
      free_device(base_);
  }
  void* base_ = nullptr;
  bool on_host_;
};

struct devices {
  int src, dst;
};

devices chosen_devices(const sdma_settings& s) {
  std::vector<tools::gpu_facts> all;
  works(tools::list_gpus(all), "no device");
  const int count = static_cast<int>(all.size());
  devices d{s.src_gpu < 0 ? 0 : s.src_gpu, s.dst_gpu < 0 ? 1 : s.dst_gpu};
  if (d.src >= count)
    fail(XIO_ERR_ARG, "--src-gpu {} is not there; this machine has {} device{}", d.src, count, count == 1 ? "" : "s");
  if (s.dst_gpu >= count)
    fail(XIO_ERR_ARG, "--dst-gpu {} is not there; this machine has {} device{}", d.dst, count, count == 1 ? "" : "s");
  if (d.dst >= count && !s.to_host) {
    std::fprintf(stderr, "xio-tester: note: there is one device, so copies stay within it\n");
    d.dst = d.src;
  }
  return d;
}

class link {
 public:
  link(const devices& d, bool to_host) {
    xio_sdma_link_attr_t attr = XIO_SDMA_LINK_ATTR_INIT;
    attr.src_device = d.src;
    attr.dst_device = to_host ? static_cast<int>(XIO_SDMA_HOST) : d.dst == d.src ? XIO_SDMA_SAME_DEVICE : d.dst;
    must(xio_sdma_connect(&attr, &link_));
  }
  ~link() { xio_sdma_disconnect(link_); }
  link& operator=(link&&) = delete;
  xio_sdma_link_t* get() const { return link_; }
  xio_sdma_queue_t queue() const {
    xio_sdma_queue_t q{};
    must(xio_sdma_queue_create(link_, nullptr, &q));
    return q;
  }

 private:
  xio_sdma_link_t* link_ = nullptr;
};

// As many ops as have places of their own: so many are checked at a time.
std::uint64_t places_for(std::uint64_t ops, std::uint64_t bytes) {
  return std::min(ops, std::max<std::uint64_t>(1, k_places_max / bytes));
}

// Checks what ops from job.first on left in their places, as the host reads it; in found.verdicts[] the blocks.
void check_places(const sdma_job& job, std::uint64_t end, lane_record& found) {
  const pattern p = pattern::of(job.seed, k_sdma_block);
  std::vector<u8> copy(job.bytes);
  for (std::uint64_t op = job.first; op < end; ++op) {
    works(copy_bytes(copy.data(), job.dst + op % job.slots * job.bytes, job.bytes), "the data cannot be read back");
    found.judge(p, copy.data(), job.bytes, sdma_block_of(op, job.bytes), ~u64{0});
  }
}

const char* name_of(sdma_test t) {
  switch (t) {
    case sdma_test::p2p: return "p2p";
    case sdma_test::ping_pong: return "ping-pong";
    case sdma_test::buffer_reuse: return "buffer-reuse";
  }
  return "";
}

local_completion how_of(const sdma_settings& s) {
  if (s.use_counter) return local_completion::counter;
  return s.use_flush ? local_completion::flush : local_completion::quiet;
}

const char* name_of(local_completion how) {
  switch (how) {
    case local_completion::quiet: return "quiet";
    case local_completion::counter: return "counter";
    case local_completion::flush: return "flush";
  }
  return "";
}

void fill_source(const sdma_job& job) {
  std::vector<u8> data(job.bytes);
  for (std::uint64_t i = 0; i < job.sources; ++i) {
    pattern::of(job.seed, k_sdma_block).fill(data.data(), job.bytes, sdma_block_of(job.first + i, job.bytes));
    works(copy_bytes(job.src + i * job.bytes, data.data(), job.bytes), "the source cannot be written");
  }
}

void poison_places(u8* places, std::uint64_t bytes) {
  const std::vector<u8> data(std::min(bytes, std::uint64_t{1} << 20), static_cast<u8>(k_poison));
  for (std::uint64_t at = 0; at < bytes; at += data.size())
    works(copy_bytes(places + at, data.data(), std::min<std::uint64_t>(data.size(), bytes - at)),
          "the destination cannot be written");
}

// Runs all ops, as many at a time as have places, and checks these before the next: a copy that did not happen leaves
// the poison behind. False if nothing is to be judged.
bool copy_and_check(run& r, sdma_job job, bool reuse) {
  const std::uint64_t ops = job.ops;
  lane_record found{};
  for (; job.first < ops; job.first += job.slots) {
    job.ops = std::min(ops, job.first + job.slots);
    fill_source(job);
    poison_places(job.dst, job.bytes * job.slots);
    const auto launch = [&] { return launch_sdma_copies(job, reuse); };
    if (job.first == 0)
      r.start(launch);
    else
      r.go_on(launch);
    if (r.failed()) return false;
    check_places(job, r.done(), found);
    if (was_interrupted()) break;
  }
  r.judge(found);
  return r.done() != 0;
}

}  // namespace

tools::command add_sdma(tools::command& app, sdma_settings& s) {
  tools::command at = app.subcommand("sdma-ep", "copies by a copy engine that a kernel drives");
  at.number("-n,--iterations", s.iterations, "copies");
  at.size("-s,--transfer-size", s.transfer_bytes, "bytes of a copy, a multiple of 4", 4, k_copy_max);
  at.number("--src-gpu", s.src_gpu, "the GPU that copies, by its engine and from its memory (default: 0)");
  at.number("--dst-gpu", s.dst_gpu, "where to (default: 1 if it is there)");
  tools::command p2p = at.subcommand("p2p", "from device to device, or to the host");
  p2p.flag("--to-host", s.to_host, "to pinned memory of the host");
  p2p.flag("--verify", s.verify, "each op carries bytes of its own; check them at the end");
  tools::command pingpong = at.subcommand("ping-pong", "there and back, with signals");
  tools::command reuse = at.subcommand("buffer-reuse", "the source is written anew as soon as it may be");
  for (tools::command one : {pingpong, reuse}) {
    one.flag("--use-counter", s.use_counter, "a local counter says that the source is free (default: quiet)");
    one.flag("--use-flush", s.use_flush, "the op's request says it");
  }
  for (tools::command one : {p2p, pingpong, reuse}) one.take_flags_of_parent();
  return at;
}

std::string wrong_sdma(const tools::command& at, const shared_settings& shared, sdma_settings& s) {
  if (at.given_subcommands().size() != 1) return "give one of p2p, ping-pong and buffer-reuse";
  if (shared.threads != 1) return "--threads is for test-ep";
  if (s.iterations == 0 || s.iterations > k_iterations_max)
    return fmt::format("--iterations {} cannot be; give 1 .. {}", s.iterations, k_iterations_max);
  if (s.transfer_bytes % 4 != 0) return fmt::format("--transfer-size {} is no multiple of 4", s.transfer_bytes);
  if (s.use_counter && s.use_flush) return "--use-counter and --use-flush do not go together";
  if (s.to_host && s.dst_gpu >= 0) return "--to-host and --dst-gpu do not go together";
  for (const auto& [flag, value] : {std::pair{"--src-gpu", s.src_gpu}, std::pair{"--dst-gpu", s.dst_gpu}})
    if (value < 0 && at.given(flag) && value != -1) return fmt::format("{} {} cannot be", flag, value);
  if (shared.memory_mode != 0) std::fprintf(stderr, "xio-tester: note: sdma-ep ignores --memory-mode\n");
  return "";
}

int run_sdma(const shared_settings& shared, const sdma_settings& s, sdma_test test) {
  devices d{};
  try {
    d = chosen_devices(s);
  } catch (const error& e) {
    return tools::refuse("xio-tester sdma-ep", e.what());
  }
  const link connection(d, s.to_host);
  const bool reuse = test == sdma_test::buffer_reuse, pingpong = test == sdma_test::ping_pong;
  sdma_job job{};
  job.bytes = s.transfer_bytes;
  job.ops = s.iterations;
  const bool verify = reuse || (s.verify && !pingpong);
  job.slots = verify ? places_for(job.ops, job.bytes) : 1;
  job.sources = reuse ? 1 : job.slots;
  job.seed = 1;
  job.how = how_of(s);
  const area src(connection.get(), d.src, false, job.bytes * (pingpong ? 2 : job.sources));
  const area dst(connection.get(), d.dst, s.to_host, job.bytes * job.slots);
  const area words(connection.get(), d.src, true, k_sdma_words * sizeof(u64));
  job.src = src.base();
  job.dst = dst.base();
  job.words = reinterpret_cast<u64*>(words.base());
  std::fill_n(job.words, k_sdma_words, u64{0});
  if (pingpong) poison_places(job.src, 2 * job.bytes);
  job.queue = connection.queue();
  if (pingpong) job.other_queue = connection.queue();
  run r(shared,
        {fmt::format("sdma-ep {}", name_of(test)), pingpong ? 2u : 1u, job.ops, job.bytes, backend_text("sdma link")});
  job.tally = r.view();
  std::printf("sdma-ep: device %d to %s, %s%s\n", d.src,
              s.to_host ? "the host" : fmt::format("device {}", d.dst).c_str(), backend_text("sdma link").c_str(),
              test == sdma_test::p2p ? "" : fmt::format(", local completion by {}", name_of(job.how)).c_str());
  if (!verify) r.start([&] { return pingpong ? launch_sdma_pingpong(job) : launch_sdma_copies(job, reuse); });
  const bool verified = verify && copy_and_check(r, job, reuse);
  if (!r.print(pingpong || verified)) return k_exit_failed;
  return was_interrupted() ? k_exit_interrupted : 0;
}

}  // namespace xio::tester
