// SPDX-License-Identifier: MIT
// Which backend plays the copy engine: the GPU's own where it can, else the software engine, and says which and why.
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "transport/sdma/generation.hpp"
#include "transport/sdma/kfd_engine.hpp"
#include "transport/sdma/queue_buffers.hpp"
#include "transport/software.hpp"
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

// Software engines of the generation that XIO_MODEL_GPU names, run by `machine`, which must outlive them.
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

// Far more than a packet takes, also where another process keeps the engine.
constexpr std::chrono::milliseconds k_trial{5000};

bool has_engines() { return std::string(gpu::name()) == "hip"; }

}  // namespace

std::unique_ptr<kfd_driver> open_kfd(option::sdma_queues_by asked) {
  if (asked == option::sdma_queues_by::hsakmt) return open_hsakmt();
  std::string why;
  try {
    return open_by_ioctls(open_kfd_kernel());
  } catch (const error& e) {
    if (asked == option::sdma_queues_by::kernel || e.status() != XIO_ERR_UNSUPPORTED) throw;
    why = e.what();
  }
  try {
    auto made = open_hsakmt();
    log::info("SDMA: queues by libhsakmt, since {}", why);
    return made;
  } catch (const error& e) {
    fail(e.status(), "{}; and {}", why, e.what());
  }
}

namespace {

// Throws why the GPU's own engines cannot be had.
std::unique_ptr<engine> open_hardware(const sdma_options& o) {
  if (!has_engines())
    fail(XIO_ERR_UNSUPPORTED, "only AMD GPUs give their copy engines to user queues, and this is the {} platform",
         gpu::name());
  return open_kfd_engine(o, open_kfd(o.sdma_queues_by), {gpu::arch(), gpu::identity()}, k_trial);
}

std::unique_ptr<engine> open_software(const sdma_options& o, progress::machine& machine, const payload_agent& payload,
                                      const std::string& why) {
  const software::devices* devices = software::built_in();
  if (devices == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "SDMA: {}, and this build has no software engine; configure without --disable-model, or set XIO_ROUTE=direct",
         why);
  auto made = std::make_unique<model_engines>(*devices, o, machine, payload);
  // Where the GPU has engines of its own, software in their place is slow, and a surprise.
  const bool surprise = has_engines() && o.backend == option::backend::automatic;
  log::line(surprise ? log::level::warn : log::level::info, "SDMA: {}, since {}", made->backend(), why);
  return made;
}

}  // namespace

std::unique_ptr<engine> open_engine(const sdma_options& o, progress::machine& machine, const payload_agent& payload) {
  if (o.backend == option::backend::model) return open_software(o, machine, payload, "XIO_BACKEND=model asks for it");
  try {
    auto made = open_hardware(o);
    log::info("SDMA: {}", made->backend());
    return made;
  } catch (const error& e) {
    if (o.backend == option::backend::hw)
      fail(e.status(), "XIO_BACKEND=hw: {}; or set XIO_BACKEND=auto or model, or XIO_ROUTE=direct", e.what());
    // A setting of the user that cannot be satisfied is an error: another engine would hide it.
    if (e.status() == XIO_ERR_CONFIG) throw;
    if (has_engines() && o.route == XIO_ROUTE_SDMA)
      fail(e.status(),
           "XIO_ROUTE=sdma asks for the GPU's copy engines: {}; or set XIO_ROUTE=auto or direct, or XIO_BACKEND=model "
           "for the software engine",
           e.what());
    return open_software(o, machine, payload, e.what());
  }
}

}  // namespace xio::sdma
