// SPDX-License-Identifier: MIT
#include "ctx/sdma_link.hpp"

#include <atomic>
#include <bit>

#include "base/backends.hpp"
#include "ctx/attributes.hpp"
#include "gpu/memory.hpp"
#include "transport/software.hpp"
#include "xio/device/impl/sdma.hpp"

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

bare_queue::bare_queue(sdma::engine& e, const sdma::queue_request& request, dev::world_view* world)
    : queue_(e.create_queue(request)), ring_(queue_->view()) {
  ring_.index = 0;
  view_ = gpu::buffer(sizeof(dev::sdma_queue_view), gpu::place::device);
  gpu::put_value(view_.as<dev::sdma_queue_view>(), dev::sdma_queue_view{ring_, world});
}

sdma_link::sdma_link(const xio_sdma_link_attr_t* attr) : queues_("queue", "destroyed", next_link_number()) {
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

void sdma_link::map(void* base, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uint64_t>(base);
  if (base == nullptr || bytes == 0 || at + bytes < at)
    fail(XIO_ERR_ARG, "xio_sdma_map: {} bytes at {} are no memory; give the start and length of a buffer", bytes, base);
  engine_->map(base, bytes);
}

void sdma_link::unmap(void* base) {
  if (base == nullptr) fail(XIO_ERR_ARG, "xio_sdma_unmap: base is null; give what was mapped");
  engine_->unmap(base);
}

xio_sdma_queue_t sdma_link::create_queue(const xio_sdma_queue_attr_t* attr) {
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

dev::ring_view sdma_link::ring(xio_sdma_queue_t q) const {
  const std::lock_guard hold(queues_lock_);
  return queues_.get(q.id).ring();
}

void sdma_link::destroy_queue(xio_sdma_queue_t q) {
  const std::lock_guard hold(queues_lock_);
  queues_.get(q.id);
  queues_.remove(q.id);
}

sdma::host_copier& sdma_link::copier() {
  const std::lock_guard hold(lock_);
  if (copier_ == nullptr)
    copier_ = std::make_unique<sdma::host_copier>(*engine_, std::chrono::milliseconds(options_.timeout_ms));
  return *copier_;
}

std::uint64_t sdma_link::start_copy(void* dst, const void* src, std::size_t bytes) {
  return copier().start(dst, src, bytes);
}

void sdma_link::wait_copy(std::uint64_t ticket) { copier().wait(ticket); }

}  // namespace xio
