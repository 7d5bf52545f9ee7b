// SPDX-License-Identifier: MIT
#include "transport/sdma/model.hpp"

#include <vector>

#include "base/error.hpp"
#include "transport/sdma/generation.hpp"
#include "transport/sdma/queue_buffers.hpp"
#include "xio/device/impl/sdma.hpp"

namespace xio::sdma {
namespace {

constexpr std::uint64_t k_seed = 0x5d3a;

// An engine while the machine runs it. Queues share it, so that they may go in any order.
struct running {
  running(progress::machine& m, std::unique_ptr<software_engine> e) : machine(m), engine(std::move(e)) {
    machine.add(&engine->device());
  }
  ~running() { machine.remove(&engine->device()); }
  running& operator=(running&&) = delete;

  progress::machine& machine;
  const std::unique_ptr<software_engine> engine;
};

class model_queue : public queue {
 public:
  model_queue(std::shared_ptr<running> engine, const queue_request& request, std::uint32_t engine_number,
              const queue_style& style)
      : running_(std::move(engine)), buffers_(request, style) {
    const dev::ring_view& v = buffers_.view();
    // The FENCE writes here.
    running_->engine->map_host(v.sdma.completion, sizeof(dev::sdma_completion));
    number_ = running_->engine->add_queue(software_queue{reinterpret_cast<const std::uint32_t*>(v.slots),
                                                         buffers_.ring_bytes(), v.sdma.write_pointer, v.sdma.doorbell,
                                                         &v.sdma.completion->fault, buffers_.start_bytes()});
    id_ = (engine_number << 16) | number_;
  }

  ~model_queue() override { stop(); }

  void stop() noexcept override {
    if (std::exchange(stopped_, true)) return;
    running_->engine->remove_queue(number_);
    running_->engine->unmap(buffers_.view().sdma.completion);
  }

  dev::ring_view view() const override {
    dev::ring_view v = buffers_.view();
    v.id = id_;
    return v;
  }

 private:
  std::shared_ptr<running> running_;
  queue_buffers buffers_;
  std::uint32_t number_ = 0, id_ = 0;
  bool stopped_ = false;
};

queue_style style_of(const sdma_options& o) {
  if (o.sdma_granule != 1 && o.sdma_granule != 4)
    fail(XIO_ERR_CONFIG, "XIO_SDMA_GRANULE={} cannot be; use 1 or 4", o.sdma_granule);
  queue_style style{};
  style.generation = generation_of(o.model_gpu);
  style.chunk = chunk_of(style.generation);
  style.granule = static_cast<std::uint16_t>(o.sdma_granule);
  const auto can = memory::of_software_device();
  style.where = memory::place_rings(o.memory_mode, "software copy engines", can, can, can);
  return style;
}

class model_engines : public engine {
 public:
  model_engines(const software::devices& devices, const sdma_options& o, progress::machine& machine,
                const payload_agent& payload)
      : style_(style_of(o)), name_("model " + o.model_gpu) {
    for (std::uint64_t i = 0; i < o.model_engines; ++i)
      engines_.push_back(std::make_shared<running>(
          machine, devices.make_copy_engine({style_.generation, k_seed + i, style_.granule}, payload, o.model_faults)));
  }

  const char* backend() const override { return name_.c_str(); }

  void map(void* base, std::size_t bytes) override {
    for (const auto& e : engines_)
      if (!e->engine->map_payload(base, bytes))
        fail(XIO_ERR_ARG, "SDMA: {} bytes at {} cannot be mapped: the range is empty or wraps around", bytes, base);
  }
  void unmap(void* base) override {
    for (const auto& e : engines_) e->engine->unmap(base);
  }

  // Queues of one peer go to different engines.
  std::unique_ptr<queue> create_queue(const queue_request& request) override {
    const auto number =
        (static_cast<std::uint32_t>(request.peer + 1) + request.which) % static_cast<std::uint32_t>(engines_.size());
    return std::make_unique<model_queue>(engines_[number], request, number, style_);
  }

 private:
  queue_style style_;
  std::string name_;
  std::vector<std::shared_ptr<running>> engines_;
};

}  // namespace

std::unique_ptr<engine> open_model(const software::devices& devices, const sdma_options& o, progress::machine& machine,
                                   const payload_agent& payload) {
  return std::make_unique<model_engines>(devices, o, machine, payload);
}

}  // namespace xio::sdma
