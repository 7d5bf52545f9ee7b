// SPDX-License-Identifier: MIT
#include "transport/rdma/memory_probe.hpp"

#include <array>
#include <random>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_clock.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "memory/hdp_thread.hpp"
#include "proxy/queue_numbers.hpp"
#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

namespace {

using clock = run_clock;

// No NIC gives it to a queue pair of its own (queue_numbers.hpp).
constexpr std::uint32_t k_number = 1;
static_assert(k_number < proxy::k_first_number);

constexpr std::size_t k_words = k_probe_bytes / 2 / sizeof(std::uint64_t);
using words = std::array<std::uint64_t, k_words>;

// A completed write may be held by the path to the GPU for a while.
constexpr std::chrono::milliseconds k_until_seen{200};
constexpr std::chrono::microseconds k_pause{50};

// Never what memory holds by chance.
words random_words() {
  std::random_device source;
  words out;
  for (auto& w : out) w = std::uint64_t{source()} << 32 | source() | 1;
  return out;
}

// By a kernel where it is a GPU's memory.
void store(const payload_agent& payload, unsigned char* at, const words& what) {
  for (std::size_t i = 0; i < what.size(); ++i)
    payload.atomic(at + i * sizeof what[i], sizeof what[i], atomic_op::swap, what[i], 0);
  payload.fence();
}

words load(const payload_agent& payload, unsigned char* at) {
  words out;
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = payload.atomic(at + i * sizeof out[i], sizeof out[i], atomic_op::fetch, 0, 0);
  return out;
}

proxy::op write_of(const probed_memory& m) {
  proxy::op o;
  o.what = proxy::verb::write;
  o.signalled = true;
  o.bytes = sizeof(words);
  o.span_count = 1;
  o.spans[0] = {reinterpret_cast<std::uint64_t>(m.words), sizeof(words), m.keys.lkey};
  o.remote = reinterpret_cast<std::uint64_t>(m.words + sizeof(words));
  o.remote_key = m.keys.rkey;
  return o;
}

// A queue pair that is connected to itself, as long as this lives.
class loopback {
 public:
  explicit loopback(const fabric_visit& visit) : visit_(visit) {}
  ~loopback() {
    visit_([&](proxy::fabric& f) {
      executor_.reset();
      if (made_) f.forget(k_number);
    });
  }
  loopback& operator=(loopback&&) = delete;

  void connect(int me) {
    visit_([&](proxy::fabric& f) {
      const auto mine = f.get_queue_address(k_number, me);
      made_ = true;
      executor_ = f.connect(k_number, me, mine, k_number);
    });
  }
  // False: it has not ended in time.
  bool carry_out(const proxy::op& o, std::chrono::milliseconds patience, proxy::op_error* how) {
    const auto until = clock::now() + patience;
    bool begun = false;
    for (;;) {
      bool ended = false;
      visit_([&](proxy::fabric& f) {
        f.poll();
        begun = begun || executor_->begin(o);
        executor_->advance(o.bytes);
        ended = begun && executor_->ended(how);
      });
      if (ended) return true;
      if (clock::now() > until) return false;
      std::this_thread::sleep_for(k_pause);
    }
  }

 private:
  const fabric_visit& visit_;
  bool made_ = false;
  std::unique_ptr<proxy::executor> executor_;
};

bool arrives(const payload_agent& payload, unsigned char* at, const words& wanted) {
  const auto until = clock::now() + k_until_seen;
  for (;;) {
    if (std::uint32_t* flush = gpu::hdp().flush; flush != nullptr) memory::flush_by_register(flush);
    if (load(payload, at) == wanted) return true;
    if (clock::now() > until) return false;
    std::this_thread::sleep_for(k_pause);
  }
}

std::chrono::milliseconds patience_of(const setup& s) {
  constexpr std::chrono::milliseconds most{10'000};
  return s.opts->timeout_ms == 0 ? most : std::min(most, std::chrono::milliseconds(s.opts->timeout_ms));
}

}  // namespace

self_write writer_of(const fabric_visit& visit, int me) {
  return [visit, me](const probed_memory& memory, std::chrono::milliseconds patience) -> std::string {
    return sentence_from([&]() -> std::string {
      proxy::op_error how;
      loopback pair(visit);
      pair.connect(me);
      if (!pair.carry_out(write_of(memory), patience, &how))
        return fmt::format("a write to itself has not completed within {} ms", patience.count());
      if (!how) return "";
      return fmt::format("a write to itself failed (outcome {}, rule {})", static_cast<unsigned>(how.what),
                         static_cast<unsigned>(how.why));
    });
  };
}

probe_result probe_memory(const self_write& write, const probed_memory& memory, const payload_agent& payload,
                          std::chrono::milliseconds patience) {
  const words sent = random_words();
  store(payload, memory.words, sent);
  store(payload, memory.words + sizeof sent, random_words());
  if (std::string why = write(memory, patience); !why.empty()) return {probe_verdict::unknown, std::move(why)};
  return {arrives(payload, memory.words + sizeof sent, sent) ? probe_verdict::same : probe_verdict::different, ""};
}

probe_result probe_memory(const fabric_visit& visit, int me, const probed_memory& memory, const payload_agent& payload,
                          std::chrono::milliseconds patience) {
  return probe_memory(writer_of(visit, me), memory, payload, patience);
}

void check_heap(const setup& s, const self_write& write, const proxy::key_pair& keys, const std::string& name) {
  if (s.spare == setup::k_no_spare) return;
  const probed_memory heap{static_cast<unsigned char*>(s.heap) + s.spare, keys};
  const probe_result r = probe_memory(write, heap, *s.payload, patience_of(s));
  if (r.verdict == probe_verdict::different)
    fail(XIO_ERR_UNSUPPORTED,
         "{} does not reach the memory that kernels see at {}; set XIO_HEAP_KIND=host, or turn on Resizable BAR "
         "(large_bar in xio-info --preflight). It has registered that memory, but what it wrote there did not arrive: "
         "its driver has moved the memory, or a guest's addresses lead elsewhere",
         name, s.heap);
  if (r.verdict == probe_verdict::unknown)
    log::warn("{}: whether it reaches the memory that kernels see could not be tried: {}", name, r.why);
}

void check_heap(const setup& s, const fabric_visit& visit, const proxy::key_pair& keys, const std::string& name) {
  check_heap(s, writer_of(visit, s.channel->rank()), keys, name);
}

std::string gpu_memory_refusal(const setup& s, const probed_nics& nics) {
  if (!gpu::has_device_memory()) return "";
  // A page: what is exported to a NIC is whole pages.
  const gpu::buffer page(gpu::page_size(), gpu::place::device, gpu::page_size());
  std::string why;
  for (std::uint32_t i = 0; i < nics.count && why.empty(); ++i) {
    proxy::key_pair keys;
    try {
      keys = nics.add(i, page.data(), gpu::page_size());
    } catch (const error& e) {
      log::debug("{}", e.what());  // registering will say that
      continue;
    }
    const probe_result r =
        probe_memory(nics.write(i), {static_cast<unsigned char*>(page.data()), keys}, *s.payload, patience_of(s));
    nics.remove(i, keys);
    if (r.verdict == probe_verdict::unknown)
      log::debug("{}: memory of the GPU could not be tried: {}", nics.name, r.why);
    if (r.verdict == probe_verdict::different)
      why =
          nics.name +
          " does not reach the GPU memory that kernels see, as was tried when it was opened; register host memory, or "
          "turn on Resizable BAR (large_bar in xio-info --preflight)";
  }
  if (!why.empty()) log::warn("{}", why);
  return why;
}

void refuse_gpu_memory(const std::string& refusal, void* base) {
  if (!refusal.empty() && gpu::locate(base).where == gpu::residence::device) fail(XIO_ERR_UNSUPPORTED, "{}", refusal);
}

}  // namespace xio::rdma
