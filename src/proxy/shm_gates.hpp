// SPDX-License-Identifier: MIT
// NICs that share memory write to their peers' by themselves. Hardware asks the queue pair at the other end, which may
// be gone; here each queue pair has a word in memory that its owner shares, the gate. A NIC that writes through it
// marks the word first, and its owner shuts the gate before it gives the queue pair up.
#pragma once
#include <map>

#include "base/other_process.hpp"
#include "proxy/fabric.hpp"

namespace xio::proxy {

// Words of a memfd, of this process or of another.
class gate_words {
 public:
  explicit gate_words(int fd, other_process owner = {});  // throws
  ~gate_words();
  gate_words& operator=(gate_words&&) = delete;

  // On lines of their own: different peers write to them.
  static constexpr std::size_t k_count = 16384;
  static constexpr std::size_t k_line = 64;
  static constexpr std::size_t k_bytes = k_count * k_line;
  std::atomic<std::uint64_t>& at(std::size_t i) const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(base_ + i * k_line);
  }
  // Looks once a millisecond. By one thread at a time.
  bool owner_has_ended() const;

 private:
  unsigned char* base_;
  const other_process owner_;
  mutable std::chrono::steady_clock::time_point look_at_{};
  mutable bool ended_ = false;
};

// The writer's end.
class remote_gate {
 public:
  remote_gate() = default;  // where there is none: always open
  remote_gate(std::shared_ptr<const gate_words> words, std::uint32_t index, std::uint64_t open)
      : words_(std::move(words)), index_(index), open_(open) {}

  // False: its owner has shut it, or is no more: its memory stays mapped here, and takes what nobody will read. Else
  // leave() comes next.
  bool enter() const;
  void leave() const;

 private:
  std::shared_ptr<const gate_words> words_;
  std::uint32_t index_ = 0;
  std::uint64_t open_ = 0;
};

// A piece takes microseconds; a process that was stopped in the middle of one takes for ever.
constexpr std::chrono::milliseconds k_gate_patience{50};

// The gates of one NIC, and those of its peers.
class shm_gates {
 public:
  // Where no memory can be shared there are none, and that is logged.
  shm_gates();
  device_address get_address() const;  // the NIC
  void connect_peers(const std::vector<device_address>& all);

  device_address open_gate(std::uint32_t number);  // that of a queue pair
  remote_gate find(int pe, const device_address& remote) const;
  // On return its peer writes nothing on behalf of the queue pair any more; unless it was stopped in the middle of a
  // piece, for which nobody waits longer than this.
  void shut(std::uint32_t number, std::chrono::milliseconds patience) noexcept;

 private:
  unique_fd fd_;
  std::shared_ptr<const gate_words> mine_;
  std::map<std::uint32_t, std::uint32_t> places_;  // by queue pair
  std::vector<std::uint32_t> free_;
  std::uint32_t used_ = 0;
  std::map<int, std::shared_ptr<const gate_words>> peers_;
};

}  // namespace xio::proxy
