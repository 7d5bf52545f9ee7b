// SPDX-License-Identifier: MIT
// The storage that nvme_read and nvme_write use: named by the user, or a file that is made for them and taken away.
#pragma once
#include "base/unique_fd.hpp"
#include "tools/xio-perf/session.hpp"

namespace xio::perf {

class drive {
 public:
  // bytes: that tests will touch, from offset 0 on. writes: tests will write. Local.
  drive(session& s, const std::string& name, std::uint64_t bytes, std::uint32_t queues, bool writes, bool direct);
  ~drive();
  drive& operator=(drive&&) = delete;

  xio_storage_t handle() const { return storage_; }
  const std::string& name() const { return name_; }
  xio_engine_stats_t stats() const;
  // Throws XIO_ERR_ARG if ops of that many bytes cannot be.
  void check_size(std::uint64_t bytes) const;
  // Returns the bytes there, read from the file itself where it is one, else by one XIO read after another.
  std::vector<unsigned char> content(std::uint64_t offset, std::uint64_t bytes, xio_route_t route) const;

 private:
  std::string make_file(std::uint64_t bytes);

  session& session_;
  std::string name_;
  std::string path_;  // of the file, if it is one
  unique_fd own_;     // a file without a name, which goes with this
  std::uint64_t bytes_, size_ = 0;
  std::uint32_t block_ = 0;
  xio_storage_t storage_{};
};

}  // namespace xio::perf
