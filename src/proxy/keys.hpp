// SPDX-License-Identifier: MIT
// Memory keys: which bytes a key opens, and for what.
#pragma once
#include <functional>
#include <vector>

#include "proxy/op.hpp"

namespace xio::proxy {

enum rights : std::uint32_t {
  local_read = 1,
  local_write = 2,
  remote_read = 4,
  remote_write = 8,
  remote_atomic = 16,
};

struct region {
  std::uint64_t base;  // address as entries name it: the owner's
  std::uint64_t bytes;
  unsigned char* mapping;  // where that is in this process
  std::uint32_t allowed;
};

// Faults on purpose, for tests: where the NIC finds the memory that is registered at `base`. Null: there.
using memory_place = std::function<unsigned char*(void* base, std::uint64_t bytes)>;

// A key is index << 8 | variant. The variant changes when an index is used again, so that an old key opens nothing.
class key_table {
 public:
  explicit key_table(std::uint32_t seed) : seed_(seed) {}

  // 0 if the range is empty or wraps.
  std::uint32_t add(const region& r);
  // Takes a region under a key that somebody else made.
  bool adopt(std::uint32_t key, const region& r);
  bool remove(std::uint32_t key);
  const region* region_of(std::uint32_t key) const;  // null: there is none

  enum class lookup { found, no_key, no_range, no_rights };
  lookup find(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, std::uint32_t wanted,
              unsigned char** place) const;

 private:
  struct row {
    std::uint32_t key;  // 0: free
    region what;
  };
  const row* row_of(std::uint32_t key) const;

  std::uint32_t seed_;
  std::uint32_t made_ = 0;
  std::vector<row> rows_;
};

}  // namespace xio::proxy
