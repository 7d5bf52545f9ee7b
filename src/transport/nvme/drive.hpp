// SPDX-License-Identifier: MIT
// An NVMe controller as its driver sees it: brought up from reset, identified, shut down cleanly. The same code for
// every way to reach the registers and to give the drive memory.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "gpu/gpu.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

// Gives the drive memory.
class bus {
 public:
  virtual ~bus() = default;
  virtual std::uint64_t map_queue(void* base, std::size_t bytes) = 0;  // answers the bus address, contiguous
  virtual void unmap_queue(void* base) = 0;
};

// Page-aligned zeroed memory that host, GPU and drive share.
class drive_memory {
 public:
  drive_memory(bus& b, std::size_t bytes, gpu::place where = gpu::place::shared);
  ~drive_memory();
  drive_memory(const drive_memory&) = delete;
  drive_memory& operator=(const drive_memory&) = delete;
  template <class T>
  T* as() const {
    return memory_.as<T>();
  }
  std::uint64_t address() const { return address_; }

 private:
  bus& bus_;
  gpu::buffer memory_;
  std::uint64_t address_ = 0;
};

struct drive_facts {
  std::uint32_t stride = 0;          // CAP.DSTRD
  std::uint32_t max_entries = 0;     // of an I/O queue
  std::uint32_t page_bytes = 4096;   // CC.MPS
  std::uint32_t transfer_bytes = 0;  // MDTS; never more than one list page can name
  bool write_cache = false;
  std::uint32_t nsid = 1;
  std::uint64_t blocks = 0;
  std::uint32_t block_bytes = 0;
  bool read_only = false;
};

class drive {
 public:
  // Resets the controller, enables it, reads what it is. Throws with `name` in the sentence.
  drive(std::string name, void* registers, bus& b, std::chrono::milliseconds timeout);
  ~drive();  // shut down and disabled
  drive(const drive&) = delete;
  drive& operator=(const drive&) = delete;

  const std::string& name() const { return name_; }
  const drive_facts& facts() const { return facts_; }
  bus& memory_bus() const { return bus_; }
  std::uint32_t* sq_doorbell(std::uint32_t qid) const;
  std::uint32_t* cq_doorbell(std::uint32_t qid) const;

  // Asks for that many I/O queue pairs, once; answers how many there are.
  std::uint32_t request_queues(std::uint32_t wanted);
  void create_queues(std::uint32_t qid, std::uint64_t sq, std::uint32_t sq_entries, std::uint64_t cq,
                     std::uint32_t cq_entries);
  void delete_queues(std::uint32_t qid);

 private:
  std::uint32_t read32(std::uint32_t offset) const;
  std::uint64_t read64(std::uint32_t offset) const;
  void write32(std::uint32_t offset, std::uint32_t value) const;
  void write64(std::uint32_t offset, std::uint64_t value) const;
  void wait_status(std::uint32_t mask, std::uint32_t value, std::chrono::milliseconds limit, const char* what) const;
  void enable();
  void identify();
  std::uint32_t admin(wire::nvme::sqe command, const char* what);  // dw0 of the answer

  std::string name_;
  unsigned char* registers_;
  bus& bus_;
  std::chrono::milliseconds timeout_;
  std::chrono::milliseconds ready_timeout_{0};
  drive_memory sq_, cq_, page_;
  std::uint32_t sq_tail_ = 0;
  std::uint32_t cq_head_ = 0;
  std::uint32_t phase_ = 1;
  std::uint16_t next_cid_ = 0;
  bool lost_ = false;  // an admin command got no answer: nothing more can be asked
  drive_facts facts_;
};

}  // namespace xio::nvme
