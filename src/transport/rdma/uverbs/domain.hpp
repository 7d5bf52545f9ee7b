// SPDX-License-Identifier: MIT
// An RDMA device's file opened by system calls alone, without its vendor's library: a context, a protection domain,
// registered memory, and the steps of a queue pair. Closing it ends all that was made with it.
#pragma once
#include <map>
#include <string>

#include "base/unique_fd.hpp"
#include "proxy/fabric.hpp"
#include "proxy/verbs_port.hpp"
#include "transport/rdma/uverbs/call.hpp"

namespace xio::rdma::uverbs {

// The driver's own part of a call: it gets the one and gives the other.
struct driver_data {
  const void* in = nullptr;
  std::size_t in_bytes = 0;
  void* out = nullptr;
  std::size_t out_bytes = 0;
};
void add(call& c, const driver_data& d);

// The release that runs, "6.12.5", for sentences.
std::string kernel_release();
// The cure of a step's errno.
const char* cure_of(int err);

class domain {
 public:
  // file: "uverbs0". Throws with the device's name.
  domain(std::string device, const std::string& file, driver which, const driver_data& context, const driver_data& pd);
  ~domain();
  domain& operator=(domain&&) = delete;

  const std::string& device() const { return device_; }
  std::uint32_t pd() const { return pd_; }
  int run(call& c) const { return c.run(fd_.get(), driver_); }
  // Doorbells, to be written. Null with errno.
  std::shared_ptr<void> map_page(std::uint64_t offset, std::size_t bytes) const;
  int modify(std::uint32_t queue_pair, modify_qp m) const;  // 0 or the errno

  proxy::key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed, bool relaxed,
                                  const proxy::memory_exporter& exporter);
  void unregister_memory(const proxy::key_pair& keys);

 private:
  int register_address(void* base, std::uint64_t bytes, std::uint32_t access, reg_mr_response* r) const;
  int register_file(void* base, std::uint64_t bytes, std::uint32_t access, const gpu::exported_memory& m,
                    reg_mr_response* r) const;

  const std::string device_;
  const driver driver_;
  unique_fd fd_;
  std::uint32_t pd_ = 0;
  std::multimap<std::uint32_t, reg_mr_response> regions_;  // by lkey
};

// A queue pair that was made, from RESET to RTS. Throws naming both ends and the step.
struct queue_steps {
  std::function<int(const modify_qp&)> modify;  // returns 0 or the errno
  const proxy::verbs_port* port;
};
void connect(const queue_steps& q, const proxy::verbs_address& mine, const proxy::verbs_address& remote, int pe,
             const proxy::verbs_path& path);
// Nothing is done for a handle of 0, which is what they leave behind: the domain's own may be 0, which is made first.
void destroy_qp(const domain& d, std::uint32_t* handle) noexcept;
void destroy_cq(const domain& d, std::uint32_t* handle) noexcept;

}  // namespace xio::rdma::uverbs
