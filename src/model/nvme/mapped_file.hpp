// SPDX-License-Identifier: MIT
// The pages of a file, mapped, so that one system call moves many blocks and no inode is locked. The kernel copies
// (process_vm_readv(2), asked of this process about itself): where a page of the file or of the payload cannot be had,
// it copies less, while a store by this process would be a SIGBUS.
#pragma once
#include <atomic>
#include <cstdlib>

#include "model/nvme/file_engine.hpp"

namespace xio::model::nvme {

class mapped_file {
 public:
  static constexpr std::uint64_t k_most_bytes = 16 << 10;  // of a job: a call of its own costs longer ones little

  // Maps whole pages of a file as long as it is now. A file that cannot be mapped is left unmapped, and no range fits.
  explicit mapped_file(int fd);
  ~mapped_file();
  mapped_file& operator=(mapped_file&&) = delete;

  // The owner's: whether a read or write may be moved here. All of it has to be in the page cache as far as is known:
  // otherwise a write would fetch first what it overwrites, and a read of a hole would fill it.
  bool fits(const file_job& job);
  // The owner's: these bytes were written by a call, so they are in the cache.
  void written(std::uint64_t offset, std::uint64_t bytes);
  // The owner's: what was known of the cache seems to be no longer true.
  void forget();

  // Anybody's. Moves jobs that fit, all of one kind; gives how many, from the front. A call for the others tells why.
  std::size_t move(std::span<file_job* const> jobs);

 private:
  static constexpr std::uint64_t k_most_mapped = std::uint64_t{1} << 40;  // a sparse file may be larger than memory
  static constexpr std::uint64_t k_region_pages = 64;
  static constexpr std::uint32_t k_most_shorts = 16;
  static constexpr std::size_t k_at_once = 64;  // jobs of one system call

  // A region of the file, and how much of it the page cache is known to hold.
  struct region {
    std::uint64_t cached;  // a bit for each page
    bool asked;
  };
  struct giver {
    void operator()(region* r) const { std::free(r); }
  };

  bool cached(std::uint64_t page);
  std::size_t move_some(std::span<file_job* const> jobs, bool writes);
  bool may_be_written() const;
  bool still_long() const;
  void give_up() { useful_.store(false, std::memory_order_relaxed); }

  int fd_;
  bool writable_ = false;
  std::uint64_t page_;
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<region[], giver> regions_;
  std::atomic<bool> useful_{false};
  std::atomic<std::uint32_t> shorts_{0};  // calls in a row that moved less than they should
};

}  // namespace xio::model::nvme
