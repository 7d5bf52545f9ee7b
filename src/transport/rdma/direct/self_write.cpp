// SPDX-License-Identifier: MIT
#include "transport/rdma/direct/self_write.hpp"

#include <deque>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_clock.hpp"
#include "proxy/keys.hpp"
#include "transport/rdma/vendor_text.hpp"
#include "xio/device/impl/bnxt.hpp"
#include "xio/device/impl/ionic.hpp"
#include "xio/device/impl/mlx5.hpp"

namespace xio::rdma {

namespace {

constexpr std::chrono::microseconds k_pause{50};
constexpr std::uint32_t k_depth = 64;
constexpr std::size_t k_tried = 8;                      // queue pairs, see gpu::ring_by_kernel
constexpr std::uint64_t k_number = 0x5d3a17'0000'0001;  // that no memory has by chance

// A queue pair that is connected to itself. Its entries are written as kernels write them (ring.hpp), by one thread
// that is alone.
class own_queue {
 public:
  own_queue(direct_nic& nic, const self_writer& how)
      : depth_(nic.depth_of(k_depth)),
        queue_(nic.make_queue(depth_, how.format->most_cq_depth == 0 ? 0 : 2 * depth_, false)),
        marks_(depth_) {
    v_.kind = how.format->kind;
    v_.state = &state_;
    v_.marks = marks_.data();
    v_.chunk = k_probe_bytes;
    queue_->fill(v_, state_);
    kernels_ = v_.rdma.doorbell;
    queue_->take_host_doorbells(v_);
    queue_->connect(queue_->identity(), how.me, how.path, v_);
  }
  ~own_queue() { queue_->stop(); }
  own_queue& operator=(own_queue&&) = delete;

  void post(const dev::rdma::work& w) {
    with_codec([&](auto codec) { post<decltype(codec)>(w); });
  }
  // Posts all but the doorbell, which a kernel can ring then.
  gpu::doorbell prepare(const dev::rdma::work& w) {
    std::uint64_t value = 0;
    std::uint64_t* const own = std::exchange(v_.rdma.doorbell, &value);
    post(w);
    v_.rdma.doorbell = own;
    return {kernels_, value};
  }
  bool is_done() {
    with_codec([&](auto codec) { decltype(codec)::drain(v_, state_.completed); });
    return state_.completed >= state_.published;
  }
  std::string failure() const {
    return state_.failed == 0 ? "" : fmt::format("a write to itself failed: {}", vendor_text(v_.kind, state_.vendor));
  }

 private:
  template <class Codec>
  void post(const dev::rdma::work& w) {
    std::uint64_t serial = 0;
    const std::uint32_t slots = Codec::slots(w);
    const std::uint64_t ticket = dev::ring_take_tickets<Codec>(v_, slots, Codec::packets(v_, w), &serial);
    Codec::encode(v_, ticket, serial, true, w);
    state_.published = ticket + slots;
    Codec::announce(v_, ticket, ticket + slots);
  }
  template <class Use>
  void with_codec(Use&& use) const {
    switch (v_.kind) {
      case dev::ring_kind::mlx5: return use(dev::mlx5_codec{});
      case dev::ring_kind::bnxt: return use(dev::bnxt_codec{});
      case dev::ring_kind::ionic: return use(dev::ionic_codec{});
      default: fail(XIO_ERR_INTERNAL, "the host does not write entries of kind {}", static_cast<int>(v_.kind));
    }
  }

  const std::uint32_t depth_;
  const std::unique_ptr<direct_queue> queue_;
  std::vector<std::uint64_t> marks_;
  dev::ring_state state_{};
  dev::ring_view v_{};
  std::uint64_t* kernels_ = nullptr;  // the doorbell as they see it
};

// From the word at `from` to the one at `to`, of registered memory.
dev::rdma::work write_of(const std::uint64_t* from, std::uint64_t* to, std::uint64_t bytes,
                         const proxy::key_pair& keys) {
  dev::rdma::work w{};
  w.what = dev::rdma::verb::write;
  w.from = dev::rdma::payload::memory;
  w.bytes = static_cast<std::uint32_t>(bytes);
  w.local = reinterpret_cast<std::uint64_t>(from);
  w.remote = reinterpret_cast<std::uint64_t>(to);
  w.lkey = keys.lkey;
  w.rkey = keys.rkey;
  return w;
}

}  // namespace

std::string write_to_itself(direct_nic& nic, const self_writer& how, const probed_memory& memory,
                            std::chrono::milliseconds patience) {
  return sentence_from([&]() -> std::string {
    own_queue queue(nic, how);
    auto* const words = reinterpret_cast<std::uint64_t*>(memory.words);
    constexpr std::size_t half = k_probe_bytes / 2;
    queue.post(write_of(words, words + half / sizeof *words, half, memory.keys));
    for (const auto until = run_clock::now() + patience; !queue.is_done(); std::this_thread::sleep_for(k_pause)) {
      if (!queue.failure().empty()) return queue.failure();
      if (run_clock::now() > until)
        return fmt::format("a write to itself has not completed within {} ms", patience.count());
    }
    return "";
  });
}

namespace {

// k_tried words, and as many that they are written to.
struct tried_memory {
  explicit tried_memory(direct_nic& of)
      : nic(of),
        keys(nic.register_memory(memory.data(), memory.size(),
                                 proxy::local_read | proxy::local_write | proxy::remote_write)) {}
  ~tried_memory() { nic.unregister_memory(keys); }
  tried_memory& operator=(tried_memory&&) = delete;

  direct_nic& nic;
  const gpu::buffer memory{2 * k_tried * sizeof(std::uint64_t), gpu::place::shared, gpu::page_size()};
  const proxy::key_pair keys;
};

// How many of the queue pairs have done what a kernel rang them for.
std::size_t count_rung(const self_writer& how, const tried_memory& memory, std::chrono::milliseconds patience) {
  std::uint64_t* const words = memory.memory.as<std::uint64_t>();
  std::deque<own_queue> queues;
  std::vector<gpu::doorbell> doorbells;
  for (std::size_t i = 0; i < k_tried; ++i) {
    words[i] = k_number + i;
    words[k_tried + i] = 0;
    const auto w = write_of(words + i, words + k_tried + i, sizeof *words, memory.keys);
    doorbells.push_back(queues.emplace_back(memory.nic, how).prepare(w));
  }
  gpu::ring_by_kernel(doorbells);
  const auto until = run_clock::now() + patience;
  for (;; std::this_thread::sleep_for(k_pause)) {
    std::size_t done = 0;
    for (const own_queue& q : queues)
      if (!q.failure().empty()) fail(XIO_ERR_IO, "{}", q.failure());
    for (std::size_t i = 0; i < k_tried; ++i)
      if (queues[i].is_done() && __atomic_load_n(words + k_tried + i, __ATOMIC_ACQUIRE) == k_number + i) ++done;
    if (done == k_tried || run_clock::now() > until) return done;
  }
}

}  // namespace

void try_doorbells(direct_nic& nic, const self_writer& how, std::chrono::milliseconds patience) {
  std::size_t done = k_tried;
  try {
    done = count_rung(how, tried_memory(nic), patience);
  } catch (const error& e) {
    log::debug("rdma: the doorbells of {} are not tried: {}", nic.identity().device, e.what());
  }
  if (done < k_tried)
    fail(XIO_ERR_UNSUPPORTED,
         "RDMA device {} has done within {} ms only {} of {} writes whose doorbells a kernel rang at once, so kernels "
         "cannot drive its queues; XIO_NIC_FAMILY=proxy lets a thread of the host do it, without this trial",
         nic.identity().device, patience.count(), done, k_tried);
}

}  // namespace xio::rdma
