// SPDX-License-Identifier: MIT
#include "ctx/engines.hpp"

#include "base/backends.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "memory/usable.hpp"

namespace xio {
namespace {

void* start(const dev::region_view& row) { return reinterpret_cast<void*>(row.base); }

void adopt_keys(dev::region_view& row, const rdma::memory_keys& keys) { std::ranges::copy(keys.lkey, row.lkey); }

// Cleaning up after a failure must not hide it.
template <class Step>
void quietly(Step&& step) noexcept {
  try {
    step();
  } catch (const std::exception& e) {
    log::debug("while cleaning up: {}", e.what());
  }
}

}  // namespace

engines::engines(const options& o, bootstrap::channel& channel, gpu::heap& heap, const direct::peers& peers,
                 dev::region_view* regions, int local_rank)
    : options_(o),
      channel_(channel),
      heap_(heap),
      peers_(peers),
      device_rows_(regions),
      local_rank_(local_rank),
      known_(*this, o.registrations) {
  regions_.row(0) =
      dev::region_view{reinterpret_cast<std::uint64_t>(heap.data()), heap.size(), {}, {}, 1, 0, 0, {}, {}};
  gpu::put_value(&device_rows_[0], regions_.row(0));
  memory::blocks::all().watch(*this);
}

engines::~engines() { memory::blocks::all().unwatch(*this); }

progress::machine& engines::machine() {
  if (machine_ == nullptr)
    machine_ = std::make_unique<progress::machine>(static_cast<unsigned>(options_.model_threads));
  return *machine_;
}

rdma::endpoint& engines::open_rdma() {
  if (rdma_ != nullptr) return *rdma_;
  options o = options_;
  // Devices that are away for a reset must not be replaced by what is far slower, and never given back.
  if (on_devices_) o.backend = option::backend::hw;
  rdma::setup s{};
  s.opts = &o;
  s.machine = &machine();
  s.payload = &gpu::payload();
  s.channel = &channel_;
  s.local_rank = local_rank_;
  s.heap = heap_.data();
  s.heap_bytes = heap_.size();
  s.spare = k_probe_at;
  if (options_.survive != 0) s.why_not_lazy = "PEs may be replaced (XIO_SURVIVE)";
  if (gpu::name() == std::string_view("cuda")) s.why_not_lazy = "CUDA lets memory wait for kernels that run";
  for (unsigned char* base : peers_.bases()) s.peer_heaps.push_back(base);
  auto endpoint = rdma::open_endpoint(s);
  const std::lock_guard hold(lock_);
  adopt_keys(regions_.row(0), endpoint->heap_keys());
  known_.each([&](auto& s) { adopt_keys(s.known, endpoint->register_memory(start(s.known), s.known.bytes)); });
  for (std::uint32_t i = 0; i < dev::k_max_regions; ++i) show_row(i);
  rdma_ = std::move(endpoint);
  ++openings_;
  on_devices_ = rdma_->on_devices();
  note_backend("rdma", rdma_->backend());
  return *rdma_;
}

void engines::close_rdma() noexcept {
  quietly([&] {
    const std::lock_guard hold(lock_);
    rdma_.reset();
    adopt_keys(regions_.row(0), {});
    known_.each([](auto& s) { adopt_keys(s.known, {}); });
    for (std::uint32_t i = 0; i < dev::k_max_regions; ++i) show_row(i);
  });
}

void engines::reopen_rdma() {
  close_rdma();
  lost_ = true;
  open_rdma();
  lost_ = false;
}

void engines::lose_rdma() noexcept {
  close_rdma();
  lost_ = true;
}

sdma::engine& engines::open_sdma() {
  if (sdma_ != nullptr) return *sdma_;
  auto engine = sdma::open_engine(options_, machine(), gpu::payload());
  engine->set_peers(gpus_);
  for (unsigned char* base : peers_.bases())
    if (base != nullptr) engine->map(base, heap_.size());
  const std::lock_guard hold(lock_);
  known_.each([&](auto& s) { engine->map(start(s.known), s.known.bytes); });
  sdma_ = std::move(engine);
  note_backend("sdma", sdma_->backend());
  return *sdma_;
}

namespace {

std::uint64_t& bus_in(dev::region_view& row, std::uint32_t space) {
  return space < dev::k_usual_spaces ? row.bus[space] : row.more_bus[space - dev::k_usual_spaces];
}
// Software drives have none.
std::uint64_t& rows_in(dev::region_view& row, std::uint32_t space) {
  return space < dev::k_usual_spaces ? row.rows : row.more_rows[space - dev::k_usual_spaces];
}

}  // namespace

dev::bus_space engines::space_of(const nvme::controller& c) {
  const std::lock_guard hold(lock_);
  return static_cast<dev::bus_space>(number_of(c));
}

std::uint32_t engines::number_of(const nvme::controller& c) {
  const std::shared_ptr<const void> domain = c.domain();
  if (domain == nullptr) return static_cast<std::uint32_t>(dev::bus_space::software);
  std::uint32_t unused = 0;
  for (std::uint32_t s = dev::k_bus_spaces; s-- > static_cast<std::uint32_t>(dev::bus_space::first);) {
    const auto there = domains_[s].lock();
    if (there == domain) return s;
    if (there == nullptr) unused = s;
  }
  if (unused == 0)
    fail(XIO_ERR_NO_MEMORY,
         "drives of {} IOMMU domains are open in this world, and one more of another was to be; close one, open it in "
         "a world of its own, or put the IOMMU in pass-through (iommu=pt), where all are one",
         dev::k_bus_spaces - 1);
  domains_[unused] = domain;
  return unused;
}

void engines::adopt_bus(dev::region_view& row, const nvme::controller& c, std::uint64_t bus) {
  const std::uint32_t space = number_of(c);
  std::uint64_t& known = bus_in(row, space);
  const std::uint64_t rows = (bus & dev::k_in_runs) != 0 ? c.rows_of(start(row), row.bytes) : 0;
  if (known != 0 && (known != bus || (rows != 0 && rows_in(row, space) != rows)))
    fail(XIO_ERR_UNSUPPORTED,
         "two drives of one IOMMU domain see the memory at {} at {:#x} and {:#x}; open them in worlds of their own, or "
         "both as nvme: (vfio)",
         start(row), known, bus);
  known = bus;
  if (rows != 0) rows_in(row, space) = rows;
}

void engines::reach(dev::region_view& row) {
  std::size_t mapped = 0;
  bool keyed = false, copied = false;
  try {
    if (rdma_ != nullptr) adopt_keys(row, rdma_->register_memory(start(row), row.bytes)), keyed = true;
    if (sdma_ != nullptr) sdma_->map(start(row), row.bytes), copied = true;
    for (; mapped < controllers_.size();) {
      nvme::controller& c = *controllers_[mapped];
      const std::uint64_t bus = c.map(start(row), row.bytes);
      ++mapped;
      adopt_bus(row, c, bus);
    }
  } catch (...) {
    while (mapped-- > 0) quietly([&] { controllers_[mapped]->unmap(start(row), row.bytes); });
    if (copied) quietly([&] { sdma_->unmap(start(row)); });
    if (keyed) quietly([&] { rdma_->unregister_memory(start(row)); });
    throw;
  }
}

void engines::unreach(dev::region_view& row) noexcept {
  for (nvme::controller* c : controllers_) quietly([&] { c->unmap(start(row), row.bytes); });
  if (sdma_ != nullptr) quietly([&] { sdma_->unmap(start(row)); });
  if (rdma_ != nullptr) quietly([&] { rdma_->unregister_memory(start(row)); });
}

// --- Registered memory -------------------------------------------------------------------------------

void engines::show_row(std::uint32_t i) {
  auto& row = regions_.row(i);
  if (row.live == 0) return;
  if (i != 0) {
    const dev::region_view& known = spans_[i]->known;
    std::ranges::copy(known.lkey, row.lkey);
    for (std::uint32_t s = 0; s < dev::k_bus_spaces; ++s) {
      const std::uint64_t bus = bus_in(spans_[i]->known, s);
      bus_in(row, s) = bus == 0 ? 0 : bus + (row.base - known.base);
    }
    row.rows = known.rows;
    std::ranges::copy(known.more_rows, row.more_rows);
  }
  gpu::copy(device_rows_[i].lkey, row.lkey, sizeof row.lkey);
  gpu::put_value(&device_rows_[i].rows, row.rows);
  gpu::copy(device_rows_[i].more_rows, row.more_rows, sizeof row.more_rows);
  // Last: a kernel that finds the address uses the table.
  gpu::copy(device_rows_[i].more_bus, row.more_bus, sizeof row.more_bus);
  gpu::copy(device_rows_[i].bus, row.bus, sizeof row.bus);
}

void engines::register_memory(void* base, std::size_t bytes) {
  const std::lock_guard hold(lock_);
  memory::registration::check_range(base, bytes);
  // Before what is registered: a length that is too long may reach into the heap or another buffer, which happens to
  // lie behind, and the length is what is wrong.
  const auto block = memory::blocks::all().around(base, bytes, "xio_mem_register");
  if (!block) memory::check_usable(base, bytes, "xio_mem_register");
  const std::uint32_t i = regions_.add(base, bytes);
  auto& row = regions_.row(i);
  try {
    // A kernel may be looking through the rows: it must find this one whole or not at all.
    dev::region_view hidden = row;
    hidden.live = 0;
    gpu::put_value(&device_rows_[i], hidden);
    spans_[i] = &known_.acquire(row.base, row.bytes, block ? &*block : nullptr);
    show_row(i);
    gpu::put_value(&device_rows_[i].live, row.live);
  } catch (...) {
    if (spans_[i] != nullptr) known_.release(*std::exchange(spans_[i], nullptr));
    regions_.remove(i);
    throw;
  }
}

bool engines::knows(const void* base, std::size_t bytes) const {
  const std::lock_guard hold(lock_);
  const auto at = reinterpret_cast<std::uint64_t>(base);
  for (std::uint32_t i = 0; i < dev::k_max_regions; ++i) {
    const dev::region_view& row = regions_.row(i);
    if (row.live != 0 && at - row.base <= row.bytes && bytes <= row.bytes - (at - row.base)) return true;
  }
  return false;
}

void engines::drop_row(std::uint32_t i) {
  gpu::put_value(&device_rows_[i].live, std::uint32_t{0});
  known_.release(*std::exchange(spans_[i], nullptr));
  regions_.remove(i);
}

void engines::unregister_memory(void* base) {
  const std::lock_guard hold(lock_);
  drop_row(regions_.find(base));
}

void engines::forget(const gpu::block& b) noexcept {
  quietly([&] {
    const std::lock_guard hold(lock_);
    const auto first = reinterpret_cast<std::uint64_t>(b.base);
    for (std::uint32_t i = 1; i < dev::k_max_regions; ++i)
      if (const auto& row = regions_.row(i);
          row.live != 0 && row.base < first + b.bytes && first < row.base + row.bytes)
        drop_row(i);
    known_.forget(first, b.bytes);
  });
}

xio_mem_cache_stats_t engines::cache_stats() const {
  const std::lock_guard hold(lock_);
  return known_.stats();
}

// --- Storage controllers -----------------------------------------------------------------------------

void engines::attach(nvme::controller& c) {
  const std::lock_guard hold(lock_);
  std::vector<dev::region_view*> mapped;
  const std::uint32_t space = number_of(c);
  const bool first = std::ranges::none_of(controllers_, [&](auto* other) { return number_of(*other) == space; });
  const auto map = [&](dev::region_view& known) {
    // Without another controller there no one holds an older address.
    if (first) bus_in(known, space) = 0;
    const std::uint64_t bus = c.map(start(known), known.bytes);
    mapped.push_back(&known);
    adopt_bus(known, c, bus);
  };
  try {
    map(regions_.row(0));
    c.check_reach(static_cast<unsigned char*>(heap_.data()) + k_trial_at, heap_.data(), heap_.size());
    known_.each([&](auto& s) { map(s.known); });
    for (std::uint32_t i = 0; i < dev::k_max_regions; ++i) show_row(i);
  } catch (...) {
    for (dev::region_view* row : mapped) quietly([&] { c.unmap(start(*row), row->bytes); });
    throw;
  }
  controllers_.push_back(&c);
}

void engines::detach(nvme::controller& c) {
  const std::lock_guard hold(lock_);
  std::erase(controllers_, &c);
  const auto unmap = [&](dev::region_view& known) { quietly([&] { c.unmap(start(known), known.bytes); }); };
  unmap(regions_.row(0));
  known_.each([&](auto& s) { unmap(s.known); });
}

}  // namespace xio
