// SPDX-License-Identifier: MIT
#include "transport/nvme/doorbells.hpp"
#include "base/error.hpp"
#include "transport/nvme/mmio_bridge.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

const char* name_of(doorbell_way way) {
  switch (way) {
    case doorbell_way::bar: return "bar";
    case doorbell_way::shadow: return "shadow";
    case doorbell_way::host: return "host";
    case doorbell_way::bridge: return "bridge";
  }
  return "";
}

doorbell_way choose_doorbells(option::nvme_doorbell wish, const drive_facts& facts, const doorbell_reach& can,
                              const std::string& name) {
  const bool reached = can.registers != nullptr;
  if (wish == option::nvme_doorbell::host) return doorbell_way::host;
  if (wish == option::nvme_doorbell::bridge) return doorbell_way::bridge;
  if (wish == option::nvme_doorbell::bar) {
    if (!reached)
      fail(XIO_ERR_UNSUPPORTED,
           "{}: kernels cannot write the doorbells of this drive, as XIO_NVME_DOORBELL=bar asks; use host or auto",
           name);
    return doorbell_way::bar;
  }
  if (wish == option::nvme_doorbell::shadow) {
    if (!facts.shadow_doorbells)
      fail(XIO_ERR_UNSUPPORTED,
           "{} has no shadow doorbells (OACS bit 8), as XIO_NVME_DOORBELL=shadow asks; use bar, host or auto", name);
    if (!reached)
      fail(XIO_ERR_UNSUPPORTED,
           "{}: shadow doorbells ask for the registers now and then, and kernels cannot write them; use host or auto",
           name);
    return doorbell_way::shadow;
  }
  if (!reached) return doorbell_way::host;
  return facts.shadow_doorbells && !can.software ? doorbell_way::shadow : doorbell_way::bar;
}

doorbells::doorbells(drive& d, const nvme_options& o, progress::machine& m, const doorbell_reach& can,
                     std::uint32_t queues)
    : drive_(d),
      machine_(m),
      can_(can),
      way_(choose_doorbells(o.nvme_doorbell, d.facts(), can, d.name())),
      queues_(queues) {
  if (way_ == doorbell_way::bar) return;
  if (way_ == doorbell_way::shadow && word_bytes() > d.facts().page_bytes)
    fail(XIO_ERR_UNSUPPORTED, "{}: the shadow doorbells of {} queues do not fit a page; ask for fewer or use bar",
         d.name(), queues);
  shadow_ = std::make_shared<drive_memory>(d.memory_bus(), word_bytes());
  if (way_ == doorbell_way::shadow) {
    events_ = std::make_shared<drive_memory>(d.memory_bus(), word_bytes());
    d.use_shadow_doorbells(shadow_, events_);
  } else if (way_ == doorbell_way::bridge) {
    use_keeper(open_bridge(o.nvme_bridge, m, can, d.name()));
  } else {
    use_keeper(std::make_unique<plain_writer>(can.host_registers));
  }
}

std::size_t doorbells::word_bytes() const {
  return w::cq_head_doorbell(queues_, drive_.facts().stride) + 4 - w::k_reg_doorbells;
}

void doorbells::use_keeper(std::unique_ptr<register_writer> writer) {
  keeper_ = std::make_unique<doorbell_keeper>(shadow_->as<std::uint32_t>(), drive_.facts().stride, queues_,
                                              std::move(writer));
  machine_.add(keeper_.get());
}

void doorbells::leave_registers(const std::vector<std::unique_ptr<io_queue>>& queues) {
  way_ = doorbell_way::host;
  shadow_ = std::make_shared<drive_memory>(drive_.memory_bus(), word_bytes());
  for (const auto& q : queues) set_words(q->id(), q->tail(), q->head());
  use_keeper(std::make_unique<plain_writer>(can_.host_registers));
}

doorbells::~doorbells() {
  if (keeper_ != nullptr) machine_.remove(keeper_.get());
}

void doorbells::prepare(std::uint32_t qid) {
  if (way_ == doorbell_way::bar) return;
  set_words(qid, 0, 0);
  if (keeper_ != nullptr) keeper_->restart(qid);
}

void doorbells::set_words(std::uint32_t qid, std::uint32_t tail, std::uint32_t head) const {
  const std::uint32_t sq = (w::sq_tail_doorbell(qid, drive_.facts().stride) - w::k_reg_doorbells) / 4;
  const std::uint32_t cq = (w::cq_head_doorbell(qid, drive_.facts().stride) - w::k_reg_doorbells) / 4;
  for (const drive_memory* page : {shadow_.get(), events_.get()}) {
    if (page == nullptr) continue;
    __atomic_store_n(page->as<std::uint32_t>() + sq, tail, __ATOMIC_SEQ_CST);
    __atomic_store_n(page->as<std::uint32_t>() + cq, head, __ATOMIC_SEQ_CST);
  }
}

void doorbells::show(std::uint32_t qid, dev::ring_view& v) const {
  const std::uint32_t sq = w::sq_tail_doorbell(qid, drive_.facts().stride);
  const std::uint32_t cq = w::cq_head_doorbell(qid, drive_.facts().stride);
  if (can_.registers != nullptr) {
    auto* registers = static_cast<unsigned char*>(can_.registers);
    v.nvme.sq_doorbell = reinterpret_cast<std::uint32_t*>(registers + sq);
    v.nvme.cq_doorbell = reinterpret_cast<std::uint32_t*>(registers + cq);
  }
  v.nvme.shadow_tail = nullptr;
  v.nvme.tail_event = nullptr;
  if (way_ == doorbell_way::bar) return;
  v.nvme.shadow_tail = shadow_->as<std::uint32_t>() + (sq - w::k_reg_doorbells) / 4;
  if (events_ != nullptr) {
    v.nvme.tail_event = events_->as<std::uint32_t>() + (sq - w::k_reg_doorbells) / 4;
    return;
  }
  // Kernels ring the completion side in the same memory, never in a register.
  v.nvme.sq_doorbell = nullptr;
  v.nvme.cq_doorbell = shadow_->as<std::uint32_t>() + (cq - w::k_reg_doorbells) / 4;
}

}  // namespace xio::nvme
