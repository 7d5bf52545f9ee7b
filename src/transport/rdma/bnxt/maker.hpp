// SPDX-License-Identifier: MIT
// What makes a bnxt NIC's queues in memory of ours: the kernel's system calls, or the vendor's library. Rings, entries
// and doorbells are the same behind both.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "proxy/verbs_port.hpp"
#include "transport/rdma/uverbs/domain.hpp"

namespace xio::rdma::bnxt {

// Drivers and libraries take rings in pages of this size alone (ib_verbs.c, bnxt_re_setup_sginfo).
constexpr std::size_t k_page = 4096;

// A queue's memory: of the process or, by a dma-buf, of the GPU. The dma-buf is closed with this.
struct queue_memory {
  queue_memory(const proxy::memory_exporter& exporter, unsigned char* from, std::size_t length);
  ~queue_memory();
  queue_memory(const queue_memory&) = delete;
  queue_memory& operator=(const queue_memory&) = delete;
  unsigned char* at;
  std::size_t bytes;
  gpu::exported_memory file;  // its fd is -1 for memory of the process
};

// One queue pair and what it needs, which is made in this order and ended with this. Calls return 0 or the errno.
class objects {
 public:
  enum side { sends, receives };
  virtual ~objects() = default;
  virtual int make_page() = 0;
  virtual int make_cq(side which, std::uint32_t entries, const queue_memory& memory) = 0;
  // The completion queue of sends is that of receives, too, where no other was made.
  virtual int make_qp(std::uint32_t depth, const queue_memory& send, const queue_memory& receive) = 0;
  virtual int modify(const uverbs::modify_qp& m) = 0;
  virtual void end_qp() noexcept = 0;

  std::uint32_t cq_number[2] = {}, qp_number = 0;
  std::shared_ptr<void> page;  // where the queue pair is announced
};

class maker {
 public:
  virtual ~maker() = default;
  virtual std::unique_ptr<objects> begin() = 0;
  // Where all completion queues are announced. Null with errno.
  virtual std::shared_ptr<void> own_page() = 0;
  // The MSN table has depth << table_log2 entries.
  virtual std::uint32_t table_log2() const = 0;
  // The file that memory is registered with, or null: it is registered by verbs.
  virtual uverbs::domain* owner() { return nullptr; }
};

// Both throw a sentence that says what is missing.
std::unique_ptr<maker> make_by_kernel(const std::string& device, const std::string& file);
std::unique_ptr<maker> make_by_library(ibv_context* context, ibv_pd* domain, std::string* path = nullptr);

// Of system calls that are not there.
std::string too_old(const std::string& device, const std::string& what);

}  // namespace xio::rdma::bnxt
