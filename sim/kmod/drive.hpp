// SPDX-License-Identifier: MIT
// The drive that the simulated module has: src/model/nvme over a file, and the module's part of driving it (registers,
// admin queue), as kernel/xio/controller.c does. Every process has a controller of its own over the same file.
#pragma once
#include <mutex>
#include <thread>

#include "kmod/settings.hpp"
#include "model/nvme/controller.hpp"

namespace kmod_sim {

class drive {
 public:
  // number: which one. Throws where its file cannot be opened.
  drive(const settings& s, std::uint32_t number);

  std::uint64_t cap() const { return cap_; }
  int registers() const { return registers_.get(); }  // the file of BAR 0
  xio::model::nvme::controller& controller() { return *controller_; }

  // 0 or an errno, as xio_controller_identify, create and delete. create: the queue's identifier at `out`.
  int identify(std::uint32_t cns, std::uint32_t nsid, void* page);
  int create(std::uint64_t sq, std::uint32_t sq_entries, std::uint64_t cq, std::uint32_t cq_entries,
             std::uint32_t* out);
  void remove(std::uint32_t qid);

 private:
  void start();
  int admin(xio::wire::nvme::sqe command, std::uint32_t* result = nullptr);
  std::uint32_t load(std::uint32_t offset) const;
  void store(std::uint32_t offset, std::uint32_t value);

  xio::model::nvme::shape shape_;
  xio::model::nvme::file file_;
  xio::unique_fd registers_;
  unsigned char* bar_ = nullptr;
  unsigned char* memory_ = nullptr;  // admin queues and a page for Identify
  std::uint64_t bus_ = 0;            // where it is for the drive
  std::unique_ptr<xio::model::nvme::controller> controller_;
  std::uint64_t cap_ = 0;
  std::mutex lock_;  // of the admin queue
  std::uint32_t sq_tail_ = 0, cq_head_ = 0, phase_ = 1, granted_ = 0;
  std::bitset<65> taken_;
  std::thread thread_;
};

}  // namespace kmod_sim
