// SPDX-License-Identifier: MIT
#include "transport/software.hpp"

#include "model/fault_text.hpp"
#include "model/nic/families.hpp"
#include "model/nvme/controller.hpp"
#include "model/nvme/file_library.hpp"
#include "model/nvme/mmio_bridge.hpp"
#include "model/sdma/fault.hpp"

namespace xio::software {

namespace {

const proxy::family* find_nic(const std::string& family) {
  namespace m = model::rdma;
  for (const proxy::family* row : {&m::mlx5_family(), &m::mlx5_cq_family(), &m::mlx5_nodbr_family(), &m::bnxt_family(),
                                   &m::ionic_family(), &m::ionic_v1_family(), &m::ernic_family()})
    if (family == row->name) return row;
  return nullptr;
}

nic_faults plan_nic_faults(const std::string& faults, int pe, fault_level level) {
  const bool frames = level == fault_level::frames;
  auto made =
      model::rdma::make_faults(faults, pe, frames ? model::rdma::fault_level::frames : model::rdma::fault_level::ops);
  nic_faults out;
  if (frames) out.frames = made.get();
  if (made != nullptr && made->moves_memory())
    out.place = [f = made.get()](void* base, std::uint64_t bytes) { return f->place_of(base, bytes); };
  out.ops = std::move(made);
  return out;
}

class copy_engine final : public sdma::software_engine {
 public:
  copy_engine(const copy_engine_plan& plan, const payload_agent& payload)
      : engine_(payload, plan.generation, plan.seed, plan.granule) {}

  void inject(model::sdma::move_faults faults) { engine_.inject(std::move(faults)); }

  progress::device& device() override { return engine_; }
  bool map_payload(void* base, std::size_t bytes) override {
    return engine_.map(base, bytes, model::sdma::memory_kind::payload);
  }
  bool map_host(void* base, std::size_t bytes) override {
    return engine_.map(base, bytes, model::sdma::memory_kind::host);
  }
  void unmap(void* base) override { engine_.unmap(base); }
  std::uint32_t add_queue(const sdma::software_queue& q) override {
    return engine_.add_queue({q.ring, q.ring_bytes, q.wptr, q.doorbell, q.report, q.start});
  }
  void remove_queue(std::uint32_t number) override { engine_.remove_queue(number); }

 private:
  model::sdma::engine engine_;
};

std::unique_ptr<sdma::software_engine> make_copy_engine(const copy_engine_plan& plan, const payload_agent& payload,
                                                        const std::string& faults) {
  auto made = std::make_unique<copy_engine>(plan, payload);
  if (!faults.empty()) made->inject(model::parse_faults(faults).moves);
  return made;
}

const char* copy_engine_failure(std::uint32_t code) {
  return model::sdma::text_of(static_cast<model::sdma::fault>(code));
}

model::nvme::shape shape_of(const nvme::drive_shape& from) {
  model::nvme::shape s;
  s.mdts_bytes = from.mdts_bytes;
  s.max_queues = from.max_queues;
  s.of_bytes = true;
  return s;
}

class file_drive final : public nvme::software_drive {
 public:
  // The arguments are checked before the file is touched, because the file may have to be made.
  file_drive(const std::string& path, const xio_storage_attr_t& attr, const nvme::drive_shape& shape,
             const std::string& faults)
      : shape_(shape_of(shape)),
        by_{shape.files_by, shape.files_library},
        faults_(model::nvme::plan_faults(faults)),
        file_(path, attr) {}

  std::size_t register_bytes() const override { return model::nvme::controller::bar_bytes(shape_); }
  std::size_t staging_bytes() const override { return model::nvme::k_staging_bytes; }
  void start(void* registers, const payload_agent& payload, std::span<std::byte> staging) override {
    controller_ = std::make_unique<model::nvme::controller>(
        registers, shape_, file_, payload, model::nvme::choose_file_engine(by_, file_, payload, staging, engine_));
    controller_->inject(faults_);
  }
  progress::device& device() override { return *controller_; }
  const char* io_engine() const override { return engine_.c_str(); }
  void grow() override { file_.grow(); }
  void commit() override { file_.commit(); }
  std::uint64_t bytes() const override { return file_.bytes(); }
  std::uint64_t extend(std::uint64_t bytes) override { return file_.extend(bytes); }

  std::uint64_t map(void* base, std::size_t bytes, memory kind) override {
    using where = model::nvme::dma_map::memory;
    switch (kind) {
      case memory::queues: return controller_->dma().add(base, bytes, where::host);
      case memory::in_host_memory: return controller_->dma().add(base, bytes, where::in_the_host);
      case memory::payload: break;
    }
    controller_->engine().lend(base, bytes);
    return controller_->dma().add(base, bytes, where::payload);
  }
  void unmap(void* base) override { controller_->dma().remove(base); }
  bool take_away(void* base) override {
    if (!controller_->take_away(base)) return false;
    controller_->engine().take_back(base);
    return true;
  }

 private:
  model::nvme::shape shape_;
  model::nvme::library_choice by_;
  std::string engine_;
  model::nvme::fault_plan faults_;
  model::nvme::file file_;
  // Goes first: its end is the end of what it does with the file.
  std::unique_ptr<model::nvme::controller> controller_;
};

std::unique_ptr<nvme::software_drive> open_drive(const std::string& path, const xio_storage_attr_t& attr,
                                                 const nvme::drive_shape& shape, const std::string& faults) {
  return std::make_unique<file_drive>(path, attr, shape, faults);
}

std::unique_ptr<progress::device> make_bridge(std::byte* ring, std::size_t bytes, std::uint32_t bdf, void* registers) {
  return std::make_unique<model::nvme::mmio_bridge>(ring, bytes, bdf, registers);
}

std::string describe_file_library(option::storage_files_by by, const std::string& file, const payload_agent& payload) {
  return model::nvme::describe_file_library({by, file}, payload);
}

constexpr devices k_devices{find_nic,   plan_nic_faults, make_copy_engine,     copy_engine_failure,
                            open_drive, make_bridge,     describe_file_library};

}  // namespace

const devices* built_in() { return &k_devices; }

}  // namespace xio::software
