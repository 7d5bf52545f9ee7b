// SPDX-License-Identifier: MIT
// Makes a NIC's queues in memory of ours: by the kernel's system calls, or by the vendor's library. Rings, entries and
// doorbells are the same behind both.
#pragma once
#include <unistd.h>

#include "proxy/verbs_port.hpp"
#include "transport/rdma/uverbs/domain.hpp"

namespace xio::rdma {

// A queue's memory: of the process or, by a dma-buf, of the GPU. The dma-buf is closed with this.
struct queue_memory {
  queue_memory(const proxy::memory_exporter& exporter, unsigned char* from, std::size_t length)
      : at(from), bytes(length), file(exporter ? exporter(from, length) : gpu::exported_memory{}) {}
  ~queue_memory() {
    if (file.fd >= 0) close(file.fd);
  }
  queue_memory& operator=(queue_memory&&) = delete;
  unsigned char* at;
  std::size_t bytes;
  gpu::exported_memory file;  // its fd is -1 for memory of the process
};

// One queue pair and what it needs, which is made in this order and ended with this. Calls return 0 or the errno.
class queue_objects {
 public:
  enum side { sends, receives };
  virtual ~queue_objects() = default;
  // Of its own for the doorbells of the queue pair, where there are such.
  virtual int make_page() { return 0; }
  virtual int make_cq(side which, std::uint32_t entries, const queue_memory& memory) = 0;
  // The completion queue of sends is that of receives, too, where no other was made.
  virtual int make_qp(std::uint32_t depth, const queue_memory& send, const queue_memory& receive) = 0;
  virtual int modify(const uverbs::modify_qp& m) = 0;
  virtual void end_qp() noexcept = 0;

  std::uint32_t cq_number[2] = {}, qp_number = 0;
  std::shared_ptr<void> page;  // where the queue pair is announced
};

class queue_maker {
 public:
  virtual ~queue_maker() = default;
  virtual std::unique_ptr<queue_objects> begin() = 0;
  // Doorbells of the context: of completion queues, and of all queues where queue pairs have no page. Null with errno.
  virtual std::shared_ptr<void> own_page() = 0;
  // The file that memory is registered with, or null: it is registered by verbs.
  virtual uverbs::domain* owner() { return nullptr; }
};

}  // namespace xio::rdma
