// SPDX-License-Identifier: MIT
#include "ctx/engines.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio {

namespace {

void* start(const dev::region_view& row) { return reinterpret_cast<void*>(row.base); }

void adopt_keys(dev::region_view& row, const rdma::memory_keys& keys) {
  std::copy(std::begin(keys.lkey), std::end(keys.lkey), row.lkey);
}

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
    : options_(o), channel_(channel), heap_(heap), peers_(peers), device_rows_(regions), local_rank_(local_rank) {
  regions_.row(0) = dev::region_view{reinterpret_cast<std::uint64_t>(heap.data()), heap.size(), 0, {}, 1, 0};
  gpu::put_value(&device_rows_[0], regions_.row(0));
}

model::machine& engines::machine() {
  if (machine_ == nullptr) machine_ = std::make_unique<model::machine>(static_cast<unsigned>(options_.model_threads));
  return *machine_;
}

rdma::endpoint& engines::open_rdma() {
  if (rdma_ != nullptr) return *rdma_;
  rdma::setup s{};
  s.opts = &options_;
  s.machine = &machine();
  s.payload = &gpu::payload();
  s.channel = &channel_;
  s.local_rank = local_rank_;
  s.heap = heap_.data();
  s.heap_bytes = heap_.size();
  for (unsigned char* base : peers_.bases()) s.peer_heaps.push_back(base);
  auto endpoint = rdma::open(s);
  for (std::uint32_t i = 0; i < dev::k_max_regions; ++i) {
    auto& row = regions_.row(i);
    if (row.live == 0) continue;
    adopt_keys(row, i == 0 ? endpoint->heap_keys() : endpoint->register_memory(start(row), row.bytes));
    gpu::copy(device_rows_[i].lkey, row.lkey, sizeof row.lkey);
  }
  rdma_ = std::move(endpoint);
  log::info("rdma: {}", rdma_->backend());
  return *rdma_;
}

sdma::engine& engines::open_sdma() {
  if (sdma_ != nullptr) return *sdma_;
  auto engine = sdma::open(options_, machine(), gpu::payload());
  for (unsigned char* base : peers_.bases())
    if (base != nullptr) engine->map(base, heap_.size());
  for (std::uint32_t i = 1; i < dev::k_max_regions; ++i)
    if (const auto& row = regions_.row(i); row.live != 0) engine->map(start(row), row.bytes);
  sdma_ = std::move(engine);
  log::info("sdma: {}", sdma_->backend());
  return *sdma_;
}

void engines::adopt_bus(dev::region_view& row, std::uint64_t bus) {
  if (row.bus != 0 && row.bus != bus)
    fail(
        XIO_ERR_UNSUPPORTED,
        "two storage controllers see the memory at {} at different addresses ({:#x} and {:#x}); open one at a time, or "
        "put both into one IOMMU group",
        start(row), row.bus, bus);
  row.bus = bus;
}

void engines::reach(dev::region_view& row) {
  std::size_t mapped = 0;
  bool keyed = false, copied = false;
  try {
    if (rdma_ != nullptr) adopt_keys(row, rdma_->register_memory(start(row), row.bytes)), keyed = true;
    if (sdma_ != nullptr) sdma_->map(start(row), row.bytes), copied = true;
    for (; mapped < controllers_.size();) {
      const std::uint64_t bus = controllers_[mapped]->map(start(row), row.bytes);
      ++mapped;
      adopt_bus(row, bus);
    }
  } catch (...) {
    while (mapped-- > 0) quietly([&] { controllers_[mapped]->unmap(start(row)); });
    if (copied) quietly([&] { sdma_->unmap(start(row)); });
    if (keyed) quietly([&] { rdma_->unregister_memory(start(row)); });
    throw;
  }
}

void engines::unreach(dev::region_view& row) {
  for (nvme::controller* c : controllers_) quietly([&] { c->unmap(start(row)); });
  if (sdma_ != nullptr) quietly([&] { sdma_->unmap(start(row)); });
  if (rdma_ != nullptr) quietly([&] { rdma_->unregister_memory(start(row)); });
}

void engines::register_memory(void* base, std::size_t bytes) {
  const std::uint32_t i = regions_.add(base, bytes);
  auto& row = regions_.row(i);
  try {
    reach(row);
    // A kernel may be looking through the rows: it must find this one whole or not at all.
    dev::region_view hidden = row;
    hidden.live = 0;
    gpu::put_value(&device_rows_[i], hidden);
    gpu::put_value(&device_rows_[i].live, row.live);
  } catch (...) {
    regions_.remove(i);
    throw;
  }
}

void engines::unregister_memory(void* base) {
  const std::uint32_t i = regions_.find(base);
  gpu::put_value(&device_rows_[i].live, std::uint32_t{0});
  unreach(regions_.row(i));
  regions_.remove(i);
}

void engines::attach(nvme::controller& c) {
  std::vector<std::uint32_t> mapped;
  try {
    for (std::uint32_t i = 0; i < dev::k_max_regions; ++i) {
      auto& row = regions_.row(i);
      if (row.live == 0) continue;
      // Without another controller no one holds an older address.
      if (controllers_.empty()) row.bus = 0;
      const std::uint64_t bus = c.map(start(row), row.bytes);
      mapped.push_back(i);
      adopt_bus(row, bus);
      gpu::put_value(&device_rows_[i].bus, row.bus);
    }
  } catch (...) {
    for (const std::uint32_t i : mapped) quietly([&] { c.unmap(start(regions_.row(i))); });
    throw;
  }
  controllers_.push_back(&c);
}

void engines::detach(nvme::controller& c) {
  std::erase(controllers_, &c);
  for (std::uint32_t i = 0; i < dev::k_max_regions; ++i)
    if (const auto& row = regions_.row(i); row.live != 0) quietly([&] { c.unmap(start(row)); });
}

}  // namespace xio
