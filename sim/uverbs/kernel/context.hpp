// SPDX-License-Identifier: MIT
// What one open file of the device has made, and the calls that make it. Calls return 0 or the kernel's errno.
#pragma once
#include "uverbs/device/device.hpp"
#include "uverbs/kernel/call.hpp"

namespace uverbs {

class context {
 public:
  explicit context(device& d) : device_(d) {}
  ~context();  // as the kernel does at close: the newest object first
  int handle(const call& c);
  // Where the page at this offset of the file is mapped, or MAP_FAILED with errno.
  void* map(std::uint64_t offset, std::uint64_t bytes, int protection, int flags);

 private:
  static constexpr unsigned k_shift = 12;
  enum class kind { domain, memory, address, umem, page, command, queue, pair };
  struct object {
    kind what;
    std::uint32_t id = 0;                     // domain's, umem's or page's number, or key
    std::uint32_t users = 0;                  // memory regions of a domain
    std::uint32_t parent = 0;                 // handle
    std::array<unsigned char, 16> destroy{};  // the firmware command that ends it
    // Of queues and queue pairs that the kernel makes.
    unsigned char* at = nullptr;
    std::uint32_t entries = 0, cq = 0, page = 0, mtu = 0;                  // cq, page: handles
    std::uint32_t receive_cq = 0, receive_entries = 0, receive_bytes = 0;  // as both are given
    unsigned char* receives = nullptr;
    std::uint32_t pipelines = 0;   // ionic: of a completion queue, as a mask
    std::uint32_t table_log2 = 0;  // bnxt: as dev::bnxt_ring has it
    firmware::queue_pair connection{};
  };

  int on_bnxt(const call& c);
  int bnxt_page(const call& c);
  int bnxt_cq(const call& c);
  int bnxt_qp(const call& c);
  int modify_pair(const call& c);
  int bnxt_context(const call& c);
  int on_ionic(const call& c);
  int ionic_context(const call& c);
  int ionic_cq(const call& c);
  int ionic_qp(const call& c);
  void start_pair(const object& o);
  void start_receives(const object& o);
  int on_device(const call& c);
  int on_devx(const call& c);
  int on_devx_object(const call& c);
  int on_umem(const call& c);
  int on_page(const call& c);
  int export_page(const call& c);
  int write_command(const call& c);
  int get_context(const call& c);
  int query_port(const call& c);
  int query_gids(const call& c);
  int alloc_domain(const call& c);
  int register_memory(const call& c);
  int create_address(const call& c);
  int query_device(const call& c, bool extended);
  int create_object(const call& c);
  int command_on(const call& c, std::uint16_t handle, std::uint16_t in, std::uint16_t out);
  int remove(std::uint32_t handle, kind what);
  int end(object& o);
  std::uint32_t keep(object o);
  object* find(std::uint64_t handle, kind what);

  device& device_;
  // Without the calls of a newer Linux. A vendor's driver has them for its library alone, which is ours.
  bool is_old() const { return device_.chosen().old_kernel || (device_.chosen().vendor && !library_); }

  bool ready_ = false, devx_ = false, library_ = false;
  bool variable_ = false;       // bnxt: entries of variable size
  std::uint32_t own_page_ = 0;  // bnxt, ionic: the context's doorbell page
  std::uint32_t next_cq_number_ = 0x2001;
  std::map<std::uint32_t, object> objects_;
  std::uint32_t next_ = 0;  // as the kernel counts
};

// Whether all of it is mapped: what the kernel could pin.
bool is_mapped(std::uint64_t at, std::uint64_t bytes);
// Maps a dma-buf as the device sees it, here any file, for the process's life. Null: it is none, it is shorter, or the
// offset is not a page's.
unsigned char* map_dmabuf(int fd, std::uint64_t offset, std::uint64_t bytes);

}  // namespace uverbs
