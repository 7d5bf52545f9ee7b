// SPDX-License-Identifier: MIT
// kernel/xio as a process sees it, in the process: the same checks in the same order, the same errnos. Buffers lie on
// the bus in pieces that are not in order, so that an address that nobody looked up is memory that is not mapped.
#pragma once
#include <array>
#include <map>
#include <random>
#include <vector>

#include "../../kernel/xio/xio_uapi.h"
#include "base/unique_fd.hpp"
#include "kmod/drive.hpp"

namespace kmod_sim {

class kernel_module {
 public:
  // The one of this process; null outside of a session.
  static kernel_module* current();

  // owner: which open of /dev/xio. 0 or an errno.
  int call(std::uint64_t owner, unsigned long request, void* argument);
  // As mmap of /dev/xio: MAP_FAILED and errno.
  void* map(std::uint64_t owner, void* at, std::size_t bytes, int protection, int flags, std::uint64_t offset);
  void close(std::uint64_t owner);

  explicit kernel_module(const settings& s) : settings_(s) {}

 private:
  static constexpr unsigned k_offset_shift = 28;

  enum class kind { pin, memory, queue_pair };
  struct piece {
    unsigned char* base;
    std::uint64_t bus, bytes;
  };
  struct object {
    std::uint64_t owner = 0;
    kind what = kind::pin;
    std::uint32_t device = 0;        // which drive
    xio::unique_fd file{};           // memory: to map
    std::uint64_t bytes = 0;         // of memory
    std::vector<piece> pieces{};     // what the drive sees
    unsigned char* whole = nullptr;  // addresses of this process that the pieces lie in
    std::uint64_t whole_bytes = 0;
    unsigned users = 0;                       // queue pairs in this memory
    std::uint32_t sq = 0, cq = 0, queue = 0;  // queue_pair
  };

  int info(xio_kmod_info& a) const;
  int pin(std::uint64_t owner, xio_kmod_pin& a);
  int segments(std::uint64_t owner, xio_kmod_segments& a);
  int memory(std::uint64_t owner, xio_kmod_memory& a);
  int release(std::uint64_t owner, const xio_kmod_release& a);
  int queue_pair(std::uint64_t owner, xio_kmod_queue_pair& a);
  int identify(const xio_kmod_identify& a, std::uint64_t* cap);
  // Which drive it is, at `out`, unless that is null.
  int claim(const xio_kmod_pci& device, bool raw, std::uint32_t* out = nullptr);
  int place_queue(std::uint64_t owner, std::uint32_t handle, std::uint64_t offset, std::uint64_t bytes,
                  std::uint64_t* bus) const;
  int show_to_drive(object& o, int file, std::uint64_t offset, std::uint64_t bytes, std::uint64_t piece_bytes,
                    xio::model::nvme::dma_map::memory as);
  void hide_from_drive(object& o);
  int add(object&& o, std::uint32_t* handle);
  object* find(std::uint64_t owner, std::uint32_t handle, kind what);
  void end(std::uint32_t handle);

  const settings& settings_;
  std::mutex lock_;
  std::array<std::unique_ptr<drive>, k_drives> drives_;
  std::map<std::uint32_t, object> objects_;
  std::uint32_t next_ = 1, identified_ = 0;
  std::uint64_t pinned_ = 0;
  std::mt19937 random_{1};
};

}  // namespace kmod_sim
