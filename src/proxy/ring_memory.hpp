// SPDX-License-Identifier: MIT
// How a NIC reaches a queue's memory: as the host memory that it is, or, where it lies in a GPU's memory that host
// threads cannot load from, by the platform's copies. Those are finished on return, so what one of them has written is
// there before what the next one writes.
#pragma once
#include <cstring>

#include "base/payload.hpp"

namespace xio::proxy {

class ring_memory {
 public:
  ring_memory() = default;  // host memory
  // `copier` copies; null: host memory.
  explicit ring_memory(const payload_agent* copier) : copier_(copier) {}

  // For memory that no one changes meanwhile: entries that a doorbell has announced.
  void read(void* to, const void* from, std::size_t bytes) const {
    if (copier_ != nullptr)
      copier_->copy(to, from, bytes);
    else
      std::memcpy(to, from, bytes);
  }

  // Words that may change at any time, each with acquire.
  template <class T>
  void load(T* to, const T* from, std::size_t count) const {
    if (copier_ != nullptr) return copier_->copy(to, from, count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) to[i] = __atomic_load_n(from + i, __ATOMIC_ACQUIRE);
  }
  template <class T>
  T load(const T* at) const {
    T word;
    load(&word, at, 1);
    return word;
  }

  // Words that nobody takes for valid before the next publish().
  template <class T>
  void write(T* at, const T* from, std::size_t count) const {
    if (copier_ != nullptr) return copier_->copy(at, from, count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) __atomic_store_n(at + i, from[i], __ATOMIC_RELAXED);
  }

  // A thread that loads this word with acquire sees all that was written before.
  template <class T>
  void publish(T* at, T word) const {
    if (copier_ != nullptr) return copier_->copy(at, &word, sizeof word);
    __atomic_store_n(at, word, __ATOMIC_RELEASE);
  }

 private:
  const payload_agent* copier_ = nullptr;
};

}  // namespace xio::proxy
