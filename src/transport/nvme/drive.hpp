// SPDX-License-Identifier: MIT
// An NVMe controller as its driver sees it: brought up from reset, identified, shut down cleanly. The same code for
// every way to reach the registers and to give the drive memory.
#pragma once
#include <chrono>

#include "gpu/gpu.hpp"
#include "transport/nvme/drive_facts.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

// Gives the drive memory.
class bus {
 public:
  virtual ~bus() = default;
  virtual std::uint64_t map_queue(void* base, std::size_t bytes) = 0;  // returns the bus address, contiguous
  virtual void unmap_queue(void* base, std::size_t bytes) = 0;         // the arguments of map_queue
  // Ends the drive's DMA where it does not stop when it is told to.
  virtual void cut_off() {}
  // Memory of the bus's own for queues and lists, zeroed and page-aligned, where there is such (that of another PCI
  // device, for one; or memory of the GPU, where that is asked for). Null: take the platform's. Goes through map_queue
  // like any other.
  virtual void* lend(std::size_t /*bytes*/, gpu::place /*where*/) { return nullptr; }
  virtual void take_back(void* /*base*/) {}
  // Where kernels reach what lend() returned.
  virtual void* seen_by_kernels(void* base) const { return base; }
};

// Page-aligned zeroed memory that host, GPU and drive share.
class drive_memory {
 public:
  drive_memory(bus& b, std::size_t bytes, gpu::place where = gpu::place::shared);
  ~drive_memory();
  drive_memory& operator=(drive_memory&&) = delete;
  // For the host, and for kernels.
  template <class T>
  T* as() const {
    return static_cast<T*>(base_);
  }
  template <class T>
  T* seen_as() const {
    return static_cast<T*>(seen_);
  }
  std::uint64_t address() const { return address_; }

 private:
  bus& bus_;
  const std::size_t bytes_;  // whole pages
  gpu::buffer memory_;       // empty where the bus lent it
  void *base_ = nullptr, *seen_ = nullptr;
  bool lent_ = false;
  std::uint64_t address_ = 0;
};

// Makes I/O queues: the driver of a whole controller, or a class that asks another driver for them.
class queue_maker {
 public:
  virtual ~queue_maker() = default;
  virtual const std::string& name() const = 0;
  virtual const drive_facts& facts() const = 0;
  virtual bus& memory_bus() const = 0;
  // A pair with the identifier `wanted`, or with one that the maker chooses; returns the identifier.
  virtual std::uint32_t create_queues(std::uint32_t wanted, std::uint64_t sq, std::uint32_t sq_entries,
                                      std::uint64_t cq, std::uint32_t cq_entries) = 0;
  // Afterwards no command of theirs touches memory.
  virtual void delete_queues(std::uint32_t qid) noexcept = 0;
};

class drive : public queue_maker {
 public:
  // Resets the controller, enables it, reads what it is. nsid 0: the first active namespace. Throws with `name` in the
  // sentence.
  drive(std::string name, void* registers, bus& b, std::chrono::milliseconds timeout, std::uint32_t nsid = 0);
  ~drive() override;  // shut down and disabled
  drive& operator=(drive&&) = delete;

  const std::string& name() const override { return name_; }
  const drive_facts& facts() const override { return facts_; }
  bus& memory_bus() const override { return bus_; }
  std::uint32_t* sq_doorbell(std::uint32_t qid) const;
  std::uint32_t* cq_doorbell(std::uint32_t qid) const;

  // Asks for that many I/O queue pairs, once; returns how many there are.
  std::uint32_t request_queues(std::uint32_t wanted);
  std::uint32_t create_queues(std::uint32_t wanted, std::uint64_t sq, std::uint32_t sq_entries, std::uint64_t cq,
                              std::uint32_t cq_entries) override;
  // A drive that does not delete them is disabled, all of it.
  void delete_queues(std::uint32_t qid) noexcept override;
  // It cannot reach memory any more, so it is asked nothing: its registers alone are set back at the end.
  void abandon() { lost_ = halted_ = true; }
  // Doorbell Buffer Config (NVMe base 2.0, 5.8): a page of shadows and one of EventIdx. The drive keeps them: the
  // controller may look at them until it is disabled.
  void use_shadow_doorbells(std::shared_ptr<drive_memory> shadow, std::shared_ptr<drive_memory> events);

 private:
  std::uint32_t read32(std::uint32_t offset) const;
  std::uint64_t read64(std::uint32_t offset) const;
  void write32(std::uint32_t offset, std::uint32_t value) const;
  void write64(std::uint32_t offset, std::uint64_t value) const;
  void wait_status(std::uint32_t mask, std::uint32_t value, std::chrono::milliseconds limit, const char* what) const;
  void enable();
  void halt() noexcept;
  void identify();
  void ring_admin(std::uint32_t* doorbell, std::uint32_t value) const;
  std::uint32_t admin(wire::nvme::sqe command, const char* what);  // returns dw0 of the CQE

  std::string name_;
  unsigned char* registers_;
  bus& bus_;
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds ready_timeout_{0};
  drive_memory sq_, cq_, page_;
  std::uint32_t sq_tail_ = 0, cq_head_ = 0, phase_ = 1;
  std::uint16_t next_cid_ = 0;
  std::shared_ptr<drive_memory> shadow_, events_;
  bool lost_ = false;    // an admin command got no valid CQE: no more can be sent
  bool halted_ = false;  // it does no DMA any more
  drive_facts facts_;
};

}  // namespace xio::nvme
