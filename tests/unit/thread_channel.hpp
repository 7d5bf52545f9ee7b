// SPDX-License-Identifier: MIT
// PEs as threads of one process, for tests of what is exchanged: a bootstrap channel over a mutex.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

#include "bootstrap/bootstrap.hpp"

namespace xio::test {

class thread_group {
 public:
  explicit thread_group(int size, std::chrono::milliseconds timeout = std::chrono::seconds(20))
      : size_(size), timeout_(timeout), gone_(static_cast<std::size_t>(size)) {}

  int size() const { return size_; }
  std::unique_ptr<bootstrap::channel> channel(int rank);

 private:
  class member;
  std::vector<std::byte> exchange(int rank, std::span<const std::byte> mine);
  void leave(int rank);

  const int size_;
  const std::chrono::milliseconds timeout_;
  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<bool> gone_;
  std::size_t frame_ = 0;
  int arrived_ = 0;
  unsigned round_ = 0;
  bool uneven_ = false;
  std::vector<std::byte> filling_, full_;
  bool full_uneven_ = false;
};

class thread_group::member final : public bootstrap::channel {
 public:
  member(thread_group& g, int rank) : group_(g), rank_(rank) {}
  ~member() override { group_.leave(rank_); }
  int rank() const override { return rank_; }
  int size() const override { return group_.size_; }
  const char* name() const override { return "threads"; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    if (broken_) fail(XIO_ERR_PEER, "an earlier exchange failed");
    broken_ = true;
    auto all = group_.exchange(rank_, mine);
    broken_ = false;
    return all;
  }
  // Each PE gives its whole row.
  bootstrap::cells all_to_all(const bootstrap::cells& mine) override {
    bootstrap::cells out;
    std::vector<std::byte> row;
    std::vector<std::uint64_t> sizes;
    for (std::size_t to = 0; to < mine.count(); ++to) {
      row.insert(row.end(), mine[to].begin(), mine[to].end());
      sizes.push_back(mine[to].size());
    }
    const auto all_sizes = allgather(std::as_bytes(std::span(sizes)));
    const auto rows = bootstrap::allgather_unequal(*this, row, bootstrap::k_data_max);
    for (std::size_t from = 0; from < rows.count(); ++from) {
      std::memcpy(sizes.data(), all_sizes.data() + from * sizeof(std::uint64_t) * sizes.size(),
                  sizes.size() * sizeof(std::uint64_t));
      const auto at = std::accumulate(sizes.begin(), sizes.begin() + rank_, std::uint64_t{0});
      out.add(rows[from].subspan(at, sizes[static_cast<std::size_t>(rank_)]));
    }
    return out;
  }

 private:
  thread_group& group_;
  int rank_;
  bool broken_ = false;
};

inline std::unique_ptr<bootstrap::channel> thread_group::channel(int rank) {
  return std::make_unique<member>(*this, rank);
}

inline void thread_group::leave(int rank) {
  std::lock_guard hold(lock_);
  gone_[static_cast<std::size_t>(rank)] = true;
  changed_.notify_all();
}

inline std::vector<std::byte> thread_group::exchange(int rank, std::span<const std::byte> mine) {
  std::unique_lock hold(lock_);
  if (arrived_ == 0) {
    frame_ = mine.size();
    filling_.assign(frame_ * static_cast<std::size_t>(size_), std::byte{});
    uneven_ = false;
  }
  if (mine.size() == frame_)
    std::copy(mine.begin(), mine.end(), filling_.begin() + static_cast<std::ptrdiff_t>(frame_) * rank);
  else
    uneven_ = true;
  const unsigned round = round_;
  if (++arrived_ == size_) {
    full_ = filling_;
    full_uneven_ = uneven_;
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  const auto until = std::chrono::steady_clock::now() + timeout_;
  while (round_ == round) {
    for (std::size_t pe = 0; pe < gone_.size(); ++pe)
      if (gone_[pe]) fail(XIO_ERR_PEER, "rank {} is gone", pe);
    if (changed_.wait_until(hold, until) == std::cv_status::timeout && round_ == round)
      fail(XIO_ERR_TIMEOUT, "a rank did not come to the exchange");
  }
  if (full_uneven_) fail(XIO_ERR_PEER, "ranks exchange different numbers of bytes");
  return full_;
}

// Runs body(rank, channel) on one thread per PE and waits for all.
inline void run_pes(int size, const std::function<void(int, std::unique_ptr<bootstrap::channel>)>& body) {
  thread_group group(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { body(rank, group.channel(rank)); });
  for (auto& t : threads) t.join();
}

}  // namespace xio::test
