// SPDX-License-Identifier: MIT
// Doorbell registers of an mlx5 device: each queue pair has its own while the device has them, and shares one after
// that.
#pragma once
#include <infiniband/mlx5dv.h>

#include <map>
#include <mutex>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma {

class mlx5_registers;

// Freed with its last queue pair.
class mlx5_register {
 public:
  // `of` outlives it.
  mlx5_register(mlx5_registers& of, mlx5dv_devx_uar* uar, void* kernels_page);
  ~mlx5_register();
  mlx5_register& operator=(mlx5_register&&) = delete;

  std::uint32_t page_id() const { return uar_->page_id; }                                       // in commands
  std::uint64_t* host_doorbell() const { return static_cast<std::uint64_t*>(uar_->reg_addr); }  // of this process
  std::uint64_t* doorbell() const { return doorbell_; }                                         // of kernels

 private:
  mlx5_registers& of_;
  mlx5dv_devx_uar* uar_;
  std::uint64_t* doorbell_;
};

class mlx5_registers {
 public:
  // Both outlive it.
  mlx5_registers(const proxy::verbs_port& port, const direct_hooks& hooks) : port_(port), hooks_(hooks) {}
  mlx5_registers& operator=(mlx5_registers&&) = delete;

  // For one queue pair more. Throws where there is none at all, saying what the driver or the platform lacks.
  std::shared_ptr<mlx5_register> take();

 private:
  friend class mlx5_register;
  // A page has several registers, and is mapped for kernels once.
  struct page {
    void* kernels;
    unsigned users;
  };

  // Null: the GPU maps no more pages. These three under the lock.
  std::shared_ptr<mlx5_register> add(mlx5dv_devx_uar* uar);
  std::shared_ptr<mlx5_register> least_shared();
  void* map(const mlx5dv_devx_uar& uar);
  bool unmap(void* at);  // takes the lock; false: the page must stay

  const proxy::verbs_port& port_;
  const direct_hooks& hooks_;
  std::mutex lock_;  // queues end on any thread
  std::map<void*, page> pages_;
  std::vector<std::weak_ptr<mlx5_register>> given_;
};

}  // namespace xio::rdma
