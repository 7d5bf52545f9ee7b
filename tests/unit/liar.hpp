// SPDX-License-Identifier: MIT
// PE 0 of two; PE 1 says what this PE says after `spoil` was at it. Lengths of what follows are never spoiled.
#pragma once
#include <functional>

#include "bootstrap/bootstrap.hpp"

namespace xio::test {

class liar final : public bootstrap::channel {
 public:
  explicit liar(std::function<void(unsigned char*)> spoil) : spoil_(std::move(spoil)) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "liar"; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    std::vector<std::byte> all(mine.begin(), mine.end());
    all.insert(all.end(), mine.begin(), mine.end());
    if (mine.size() > sizeof(std::uint32_t)) spoil_(reinterpret_cast<unsigned char*>(all.data() + mine.size()));
    return all;
  }
  bootstrap::cells all_to_all(const bootstrap::cells& mine) override {
    bootstrap::cells out = mine;
    std::copy(mine[0].begin(), mine[0].end(), out[1].begin());
    spoil_(reinterpret_cast<unsigned char*>(out[1].data()));
    return out;
  }

 private:
  std::function<void(unsigned char*)> spoil_;
};

}  // namespace xio::test
