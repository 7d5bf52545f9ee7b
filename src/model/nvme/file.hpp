// SPDX-License-Identifier: MIT
// The file or block device behind a drive: how it is opened, how long it is, how it grows.
#pragma once
#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "xio/xio.h"

namespace xio::model::nvme {

class file {
 public:
  // Opens and checks, and leaves the file as it is. Throws one sentence: not there, not a file, no permission, too
  // short, bad block size, larger than a file can be.
  file(const std::string& path, const xio_storage_attr_t& attr);
  // Undoes all that was never committed: a file that was made is removed, one that grew is cut back.
  ~file();
  file& operator=(file&&) = delete;

  // Makes the file as long as was asked, which may be refused.
  void grow();
  // Grows and empties the file as was asked, before its first block is read or written. Its bytes are known before, so
  // that this can wait until nothing else may refuse the opening.
  void commit();
  // After that, by any thread: `bytes` long at least, and as long as others have made it. Returns how long it is.
  std::uint64_t extend(std::uint64_t bytes);

  int fd() const { return fd_.get(); }
  // The same file past the page cache (O_DIRECT), or -1 where there is no such way; and the same where
  // XIO_STORAGE_DIRECT asked for it.
  int direct();
  int direct_if_asked() { return asks_direct_ ? direct() : -1; }
  const std::string& path() const { return path_; }
  bool read_only() const { return read_only_; }
  std::uint32_t block_bytes() const { return block_bytes_; }
  // The file's length when it was opened, or the one that commit() or extend() gives it.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_acquire); }
  // False once somebody has made the file shorter: what is written now would lie behind a hole that nobody wrote.
  // Stays so. Asks the operating system.
  bool whole();

 private:
  explicit file(const std::string& path) : path_(path) {}
  void open_file(std::uint32_t flags);
  void open_or_make(int how);
  void refuse_the_kernels_own() const;
  std::uint64_t measure();
  void check_growth(std::uint64_t bytes);
  void resize(std::uint64_t bytes);
  void undo();
  void unmake();

  std::string path_;
  unique_fd fd_, direct_;
  bool read_only_ = false, asks_direct_ = false, block_device_ = false;
  bool made_ = false;  // by this opening
  bool empties_ = false, grows_ = false;
  struct growth {
    std::uint64_t from;
    timespec at;  // any later write makes the file newer
  };
  std::optional<growth> grown_;
  bool committed_ = false;
  std::uint32_t block_bytes_ = 512;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<bool> cut_{false};
  std::atomic<bool> removed_{false};  // said, or it never had a name (O_TMPFILE)
};

}  // namespace xio::model::nvme
