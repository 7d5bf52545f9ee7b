// SPDX-License-Identifier: MIT
#include "proxy/shm_gates.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio::proxy {

namespace {

// Of a gate's word. The rest counts the queue pairs that have had it, so that the writer of one that is gone does not
// pass by the gate of the next.
constexpr std::uint64_t k_busy = 1, k_shut = 2;
constexpr unsigned k_turn_shift = 2;

constexpr std::uint64_t k_nic_magic = 0x314574614765494e;

struct nic_address {
  std::uint64_t magic, pid, fd, device, inode;
};
// Without padding: there is one for each queue pair of each peer.
struct queue_part {
  std::uint32_t index, open_low, open_high;
  std::uint64_t open() const { return std::uint64_t{open_high} << 32 | open_low; }
};

template <class T>
device_address pack(const T& body) {
  device_address out(sizeof body);
  std::memcpy(out.data(), &body, sizeof body);
  return out;
}
template <class T>
std::optional<T> unpack(const device_address& from) {
  T body;
  if (from.size() != sizeof body) return {};
  std::memcpy(&body, from.data(), sizeof body);
  return body;
}

std::shared_ptr<const gate_words> open_of(const nic_address& c) {
  other_process owner(static_cast<pid_t>(c.pid));  // before the file shows that the number is still its
  const std::string path = fmt::format("/proc/{}/fd/{}", c.pid, c.fd);
  const unique_fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat st {};
  if (!fd || fstat(fd.get(), &st) != 0) fail(XIO_ERR_PEER, "{}: {}", path, errno_text(errno));
  if (st.st_dev != c.device || st.st_ino != c.inode || static_cast<std::size_t>(st.st_size) != gate_words::k_bytes)
    fail(XIO_ERR_PEER, "{} is not what process {} announced", path, c.pid);
  return std::make_shared<const gate_words>(fd.get(), std::move(owner));
}

}  // namespace

gate_words::gate_words(int fd, other_process owner) : owner_(std::move(owner)) {
  void* at = mmap(nullptr, k_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) fail(XIO_ERR_NO_MEMORY, "{} bytes for gates: {}", k_bytes, errno_text(errno));
  base_ = static_cast<unsigned char*>(at);
}

gate_words::~gate_words() { munmap(base_, k_bytes); }

bool gate_words::owner_has_ended() const {
  const auto now = std::chrono::steady_clock::now();
  if (ended_ || now < look_at_) return ended_;
  look_at_ = now + std::chrono::milliseconds(1);
  return ended_ = owner_.has_ended();
}

bool remote_gate::enter() const {
  if (words_ == nullptr) return true;
  if (words_->owner_has_ended()) return false;
  std::uint64_t open = open_;
  return words_->at(index_).compare_exchange_strong(open, open_ | k_busy, std::memory_order_seq_cst);
}

void remote_gate::leave() const {
  if (words_ != nullptr) words_->at(index_).fetch_and(~k_busy, std::memory_order_release);
}

shm_gates::shm_gates() {
  try {
    fd_ = unique_fd(memfd_create("xio-gates", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // Sealed: a process that made it shorter would end those that look at it.
    if (!fd_ || ftruncate(fd_.get(), gate_words::k_bytes) != 0 ||
        fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
      fail(XIO_ERR_NO_MEMORY, "{} bytes for gates: {}", gate_words::k_bytes, errno_text(errno));
    mine_ = std::make_shared<const gate_words>(fd_.get());
  } catch (const error& e) {
    log::info("peers may write late over shared memory: {}", e.what());
  }
}

device_address shm_gates::get_address() const {
  struct stat st {};
  if (mine_ == nullptr || fstat(fd_.get(), &st) != 0) return {};
  return pack(nic_address{k_nic_magic, static_cast<std::uint64_t>(getpid()), static_cast<std::uint64_t>(fd_.get()),
                          static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino)});
}

void shm_gates::connect_peers(const std::vector<device_address>& all) {
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    const auto theirs = unpack<nic_address>(all[pe]);
    if (!theirs || theirs->magic != k_nic_magic) continue;
    try {
      peers_[static_cast<int>(pe)] = open_of(*theirs);
    } catch (const error& e) {
      log::info("this PE may write to PE {} late: {}", pe, e.what());
    }
  }
}

device_address shm_gates::open_gate(std::uint32_t number) {
  if (mine_ == nullptr || (free_.empty() && used_ == gate_words::k_count)) return {};
  std::uint32_t index = used_;
  if (free_.empty()) {
    ++used_;
  } else {
    index = free_.back();
    free_.pop_back();
  }
  auto& word = mine_->at(index);
  const std::uint64_t open = ((word.load(std::memory_order_relaxed) >> k_turn_shift) + 1) << k_turn_shift;
  word.store(open, std::memory_order_seq_cst);
  places_[number] = index;
  return pack(queue_part{index, static_cast<std::uint32_t>(open), static_cast<std::uint32_t>(open >> 32)});
}

remote_gate shm_gates::find(int pe, const device_address& remote) const {
  const auto c = unpack<queue_part>(remote);
  const auto words = peers_.find(pe);
  if (!c || c->index >= gate_words::k_count || words == peers_.end()) return {};
  return {words->second, c->index, c->open() & ~(k_busy | k_shut)};
}

void shm_gates::shut(std::uint32_t number, std::chrono::milliseconds patience) noexcept {
  const auto found = places_.find(number);
  if (found == places_.end()) return;
  const std::uint32_t index = found->second;
  places_.erase(found);
  auto& word = mine_->at(index);
  word.fetch_or(k_shut, std::memory_order_seq_cst);
  const auto until = std::chrono::steady_clock::now() + patience;
  while ((word.load(std::memory_order_acquire) & k_busy) != 0) {
    if (std::chrono::steady_clock::now() > until) {
      log::warn("the peer of queue pair {} was stopped while it wrote here, and may write the rest of a piece", number);
      return;  // and the gate is not used again
    }
    std::this_thread::yield();
  }
  free_.push_back(index);
}

}  // namespace xio::proxy
