// SPDX-License-Identifier: MIT
// The C boundary of xio/sdma.h, and what is behind it.
#include <bit>
#include <set>

#include "base/backends.hpp"
#include "ctx/attributes.hpp"
#include "ctx/entry.hpp"
#include "ctx/handles.hpp"
#include "ctx/rings.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "transport/sdma/host_copier.hpp"
#include "transport/software.hpp"
#include "xio/sdma.h"

namespace xio {
namespace {

constexpr std::uint32_t k_least_ring = 256;
constexpr std::uint32_t k_most_ring = 2u << 20;
constexpr std::uint32_t k_usual_ring = 16u << 10;

std::uint32_t next_link_number() {
  static std::atomic<std::uint32_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

options link_options(const xio_sdma_link_attr_t& a) {
  options o = options::from_environment();
  software::check_backend(o.backend);
  o.tcp_key = secret_text();
  if (a.reserved != 0) fail(XIO_ERR_CONFIG, "xio_sdma_link_attr_t.reserved is {}; set it to 0", a.reserved);
  if (a.timeout_ms != 0) o.timeout_ms = a.timeout_ms == UINT32_MAX ? 0 : a.timeout_ms;
  if (a.engines != nullptr) o.sdma_engines = a.engines;
  return o;
}

void check_devices(const xio_sdma_link_attr_t& a) {
  const int count = gpu::device_count();
  if (a.src_device < 0 || a.src_device >= count)
    fail(XIO_ERR_ARG, "xio_sdma_connect: source device {} is none of the {} that are here; devices count from 0",
         a.src_device, count);
  if (a.dst_device != XIO_SDMA_SAME_DEVICE && a.dst_device != XIO_SDMA_HOST &&
      (a.dst_device < 0 || a.dst_device >= count))
    fail(XIO_ERR_ARG,
         "xio_sdma_connect: destination device {} is none of the {} that are here; give one, XIO_SDMA_SAME_DEVICE or "
         "XIO_SDMA_HOST",
         a.dst_device, count);
  const int current = gpu::selected_device();
  if (current >= 0 && current != a.src_device)
    fail(XIO_ERR_STATE,
         "xio_sdma_connect: this process is on device {} already and device {} was asked for; use a process for each "
         "source device",
         current, a.src_device);
}

}  // namespace

// A queue and what its kernels read.
class bare_queue {
 public:
  bare_queue(sdma::engine& e, const sdma::queue_request& request, dev::world_view* world)
      : queue_(e.create_queue(request)), ring_(queue_->view()) {
    ring_.index = 0;
    view_ = gpu::buffer(sizeof(dev::sdma_queue_view), gpu::place::device);
    gpu::put_value(view_.as<dev::sdma_queue_view>(), dev::sdma_queue_view{ring_, world});
  }
  void* view() const { return view_.data(); }
  const dev::ring_view& ring() const { return ring_; }

 private:
  std::unique_ptr<sdma::queue> queue_;
  dev::ring_view ring_;
  gpu::buffer view_;
};

// Copy engines without a world: what xio/sdma.h connects.
class sdma_link {
 public:
  explicit sdma_link(const xio_sdma_link_attr_t* attr) : queues_("queue", "destroyed", next_link_number()) {
    const xio_sdma_link_attr_t standard = XIO_SDMA_LINK_ATTR_INIT;
    const xio_sdma_link_attr_t chosen = read_attr(attr == nullptr ? &standard : attr, "xio_sdma_link_attr_t");
    options_ = link_options(chosen);
    check_devices(chosen);
    gpu::init(chosen.src_device);
    const int other = chosen.dst_device != chosen.src_device ? chosen.dst_device : -1;
    peer_ = other >= 0 ? 0 : -1;
    if (other >= 0) gpu::reach_peer(other);
    world_ = gpu::buffer(sizeof(dev::world_view), gpu::place::device);
    auto* world = world_.as<dev::world_view>();
    gpu::put_value(&world->ticks_per_ms, gpu::ticks_per_ms());
    gpu::put_value(&world->timeout_ticks, options_.timeout_ms * gpu::ticks_per_ms());
    machine_ = std::make_unique<progress::machine>(static_cast<unsigned>(options_.model_threads));
    engine_ = sdma::open_engine(options_, *machine_, gpu::payload());
    // Peer 0 of the engine is the other device.
    if (other >= 0) engine_->set_peers({gpu::identity_of(other)});
    note_backend("sdma link", engine_->backend());
  }

  void map(void* base, std::size_t bytes) {
    const auto at = reinterpret_cast<std::uint64_t>(base);
    if (base == nullptr || bytes == 0 || at + bytes < at)
      fail(XIO_ERR_ARG, "xio_sdma_map: {} bytes at {} are no memory; give the start and length of a buffer", bytes,
           base);
    engine_->map(base, bytes);
  }
  void unmap(void* base) {
    if (base == nullptr) fail(XIO_ERR_ARG, "xio_sdma_unmap: base is null; give what was mapped");
    engine_->unmap(base);
  }
  xio_sdma_queue_t create_queue(const xio_sdma_queue_attr_t* attr) {
    const xio_sdma_queue_attr_t a = read_attr(attr, "xio_sdma_queue_attr_t");
    const std::uint32_t bytes = a.ring_bytes == 0 ? k_usual_ring : a.ring_bytes;
    if (!std::has_single_bit(bytes) || bytes < k_least_ring || bytes > k_most_ring)
      fail(XIO_ERR_CONFIG, "xio_sdma_queue_attr_t.ring_bytes is {}; use a power of two from {} to {}", bytes,
           k_least_ring, k_most_ring);
    if (a.single_thread > 1)
      fail(XIO_ERR_CONFIG, "xio_sdma_queue_attr_t.single_thread is {}; use 0 or 1", a.single_thread);
    // Only creating and destroying change it, and they come from one thread at a time.
    const std::uint32_t which = static_cast<std::uint32_t>(queues_.live().size());
    auto made = std::make_unique<bare_queue>(
        *engine_, sdma::queue_request{bytes / dev::k_sdma_slot_bytes, 0, peer_, which, a.single_thread != 0},
        world_.as<dev::world_view>());
    void* view = made->view();
    const std::lock_guard hold(queues_lock_);
    return xio_sdma_queue_t{view, queues_.add(std::move(made))};
  }
  void destroy_queue(xio_sdma_queue_t q) {
    const std::lock_guard hold(queues_lock_);
    queues_.get(q.id);
    queues_.remove(q.id);
  }
  dev::ring_view ring(xio_sdma_queue_t q) const {
    const std::lock_guard hold(queues_lock_);
    return queues_.get(q.id).ring();
  }
  std::uint64_t start_copy(void* dst, const void* src, std::size_t bytes) { return copier().start(dst, src, bytes); }
  void wait_copy(std::uint64_t ticket) { copier().wait(ticket); }

 private:
  sdma::host_copier& copier() {
    const std::lock_guard hold(lock_);
    if (copier_ == nullptr)
      copier_ = std::make_unique<sdma::host_copier>(*engine_, std::chrono::milliseconds(options_.timeout_ms));
    return *copier_;
  }

  options options_;
  int peer_;  // of the engine: 0 is the other device, -1 none
  gpu::buffer world_;
  // Later members use earlier ones; they go in reverse.
  std::unique_ptr<progress::machine> machine_;
  std::unique_ptr<sdma::engine> engine_;
  std::mutex lock_;  // of copier_'s making
  std::unique_ptr<sdma::host_copier> copier_;
  mutable std::mutex queues_lock_;  // one thread creates and destroys; others read their counts meanwhile
  handles<bare_queue> queues_;
};

}  // namespace xio

struct xio_sdma_link {
  explicit xio_sdma_link(const xio_sdma_link_attr_t* attr) : impl(attr) {}
  xio::sdma_link impl;
};

namespace {

using xio::entry;
using xio::fail;
using xio::not_null;

// Links between connect and disconnect: a pointer that is not here is refused before it is followed.
class live_links {
 public:
  void add(xio_sdma_link_t* l) {
    const std::lock_guard hold(lock_);
    all_.insert(l);
  }
  bool has(const xio_sdma_link_t* l) {
    const std::lock_guard hold(lock_);
    return all_.count(l) != 0;
  }
  void remove(const xio_sdma_link_t* l) {
    const std::lock_guard hold(lock_);
    all_.erase(l);
  }

 private:
  std::mutex lock_;
  std::set<const xio_sdma_link_t*> all_;
};

live_links& links() {
  // Never destroyed: programs may call from destructors of their own statics.
  static auto* one = new live_links;
  return *one;
}

template <class Link, class Body>
xio_status_t on_link(Link* l, const char* function, Body&& body) noexcept {
  return entry(function, [&] {
    if (l == nullptr) fail(XIO_ERR_ARG, "{}: link is null; give the one that xio_sdma_connect made", function);
    if (!links().has(l))
      fail(XIO_ERR_STATE, "{}: the link {} is not connected or was disconnected; call xio_sdma_connect first", function,
           static_cast<const void*>(l));
    body(l->impl);
  });
}

}  // namespace

extern "C" {

xio_status_t xio_sdma_connect(const xio_sdma_link_attr_t* attr, xio_sdma_link_t** link) {
  return entry(__func__, [&, function = __func__] {
    not_null(link, function, "link");
    *link = nullptr;
    xio::process::claim();
    auto made = std::make_unique<xio_sdma_link_t>(attr);
    links().add(made.get());
    *link = made.release();
  });
}

xio_status_t xio_sdma_disconnect(xio_sdma_link_t* link) {
  return on_link(link, __func__, [&](xio::sdma_link&) {
    links().remove(link);
    const std::unique_ptr<xio_sdma_link_t> last(link);
  });
}

xio_status_t xio_sdma_map(xio_sdma_link_t* link, void* base, size_t bytes) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.map(base, bytes); });
}

xio_status_t xio_sdma_unmap(xio_sdma_link_t* link, void* base) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.unmap(base); });
}

xio_status_t xio_sdma_queue_create(xio_sdma_link_t* link, const xio_sdma_queue_attr_t* attr, xio_sdma_queue_t* queue) {
  return on_link(link, __func__, [&, function = __func__](xio::sdma_link& l) {
    not_null(queue, function, "queue");
    *queue = {};
    *queue = l.create_queue(attr);
  });
}

xio_status_t xio_sdma_queue_destroy(xio_sdma_link_t* link, xio_sdma_queue_t queue) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.destroy_queue(queue); });
}

xio_status_t xio_sdma_queue_stats(const xio_sdma_link_t* link, xio_sdma_queue_t queue, xio_engine_stats_t* out) {
  return on_link(link, __func__, [&, function = __func__](const xio::sdma_link& l) {
    not_null(out, function, "out");
    xio_engine_stats_t found = XIO_ENGINE_STATS_INIT;
    xio::add_stats({l.ring(queue)}, found);
    xio::write_out(out, found, "xio_engine_stats_t");
  });
}

xio_status_t xio_sdma_queue_error(const xio_sdma_link_t* link, xio_sdma_queue_t queue, xio_error_info_t* info) {
  return on_link(link, __func__, [&, function = __func__](const xio::sdma_link& l) {
    not_null(info, function, "info");
    xio_error_info_t found = XIO_ERROR_INFO_INIT;
    std::uint64_t when = 0;
    xio::find_failure({l.ring(queue)}, {}, found, when);
    xio::write_out(info, found, "xio_error_info_t");
  });
}

xio_status_t xio_sdma_copy(xio_sdma_link_t* link, void* dst, const void* src, size_t bytes) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.wait_copy(l.start_copy(dst, src, bytes)); });
}

xio_status_t xio_sdma_copy_start(xio_sdma_link_t* link, void* dst, const void* src, size_t bytes, xio_req_t* request) {
  return on_link(link, __func__, [&, function = __func__](xio::sdma_link& l) {
    not_null(request, function, "request");
    *request = 0;
    *request = l.start_copy(dst, src, bytes);
  });
}

xio_status_t xio_sdma_copy_wait(xio_sdma_link_t* link, xio_req_t request) {
  return on_link(link, __func__, [&](xio::sdma_link& l) { l.wait_copy(request); });
}

}  // extern "C"
