// SPDX-License-Identifier: MIT
#include "transport/sdma/model.hpp"

#include "base/error.hpp"
#include "model/sdma/engine.hpp"
#include "transport/sdma/queue_buffers.hpp"
#include "xio/device/sdma.hpp"
#include "xio/wire/sdma.hpp"

namespace xio::sdma {

namespace {

using model::sdma::memory_kind;

// gfx90a: counts of 30 bits.
constexpr std::uint64_t k_copy_bytes = wire::sdma::k_copy_bytes_30;
constexpr std::uint64_t k_seed = 0x5d3a;

// The engine while the machine runs it. Queues share it, so that they may go in any order.
struct running {
  running(model::machine& m, const payload_agent& payload) : machine(m), device(payload, k_copy_bytes, k_seed) {
    machine.add(&device);
  }
  ~running() { machine.remove(&device); }
  running(const running&) = delete;
  running& operator=(const running&) = delete;

  model::machine& machine;
  model::sdma::engine device;
};

class model_queue : public queue {
 public:
  model_queue(std::shared_ptr<running> engine, const queue_request& request)
      : engine_(std::move(engine)), buffers_(request, wire::sdma::gen_9_0a, static_cast<std::uint32_t>(k_copy_bytes)) {
    const dev::ring_view& v = buffers_.view();
    // The FENCE writes here.
    engine_->device.map(v.completion, sizeof(dev::sdma_completion), memory_kind::host);
    number_ = engine_->device.add_queue(model::sdma::queue_memory{
        reinterpret_cast<const std::uint32_t*>(v.slots), buffers_.ring_bytes(),
        reinterpret_cast<const std::uint64_t*>(v.record), v.doorbell,
        &reinterpret_cast<dev::sdma_completion*>(v.completion)->fault, buffers_.start_bytes()});
  }

  ~model_queue() override {
    engine_->device.remove_queue(number_);
    engine_->device.unmap(buffers_.view().completion);
  }

  dev::ring_view view() const override {
    dev::ring_view v = buffers_.view();
    v.id = number_;
    return v;
  }

 private:
  std::shared_ptr<running> engine_;
  queue_buffers buffers_;
  std::uint32_t number_ = 0;
};

class model_engine : public engine {
 public:
  model_engine(model::machine& machine, const payload_agent& payload)
      : running_(std::make_shared<running>(machine, payload)) {}

  const char* backend() const override { return "model gfx90a"; }

  void map(void* base, std::size_t bytes) override {
    if (!running_->device.map(base, bytes, memory_kind::payload)) {
      fail(XIO_ERR_ARG, "SDMA: {} bytes at {} cannot be mapped: the range is empty or wraps around", bytes, base);
    }
  }
  void unmap(void* base) override { running_->device.unmap(base); }

  std::unique_ptr<queue> create_queue(const queue_request& request) override {
    return std::make_unique<model_queue>(running_, request);
  }

 private:
  std::shared_ptr<running> running_;
};

}  // namespace

std::unique_ptr<engine> open_model(model::machine& machine, const payload_agent& payload) {
  return std::make_unique<model_engine>(machine, payload);
}

}  // namespace xio::sdma
