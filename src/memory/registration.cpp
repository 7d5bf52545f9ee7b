// SPDX-License-Identifier: MIT
#include "memory/registration.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace xio::memory {

// A kernel that looks for other memory may read one half of a row before and the other after it is given away. Neither
// mix may then hold what is registered, or that memory would get the keys of this.
bool registration::would_mix(const dev::region_view& old, std::uint64_t at, std::uint64_t bytes) const {
  const auto overlaps = [](const dev::region_view& r, std::uint64_t from, std::uint64_t length) {
    return from < r.base + r.bytes && (r.base < from || r.base - from < length);
  };
  return std::ranges::any_of(rows_, [&](const dev::region_view& r) {
    return r.live != 0 && (overlaps(r, old.base, bytes) || overlaps(r, at, old.bytes));
  });
}

void registration::check_range(const void* base, std::uint64_t bytes) {
  const auto at = reinterpret_cast<std::uint64_t>(base);
  if (base == nullptr) fail(XIO_ERR_ARG, "xio_mem_register: base is null; give the start of the buffer");
  if (bytes == 0) fail(XIO_ERR_ARG, "xio_mem_register: bytes is 0; give the length of the buffer at {}", base);
  if (at + bytes < at)
    fail(XIO_ERR_ARG, "xio_mem_register: {} bytes from {} go past the end of the address space; check the length",
         bytes, base);
}

std::uint32_t registration::add(void* base, std::uint64_t bytes) {
  check_range(base, bytes);
  const auto at = reinterpret_cast<std::uint64_t>(base);
  std::uint32_t empty = dev::k_max_regions;
  for (std::uint32_t i = dev::k_max_regions; i-- > 0;) {
    const auto& r = rows_[i];
    if (r.live == 0) {
      empty = i;
    } else if (at < r.base + r.bytes && r.base < at + bytes) {
      if (i == 0)
        fail(XIO_ERR_ARG, "xio_mem_register: {} bytes at {} are in the symmetric heap, which engines reach already",
             bytes, base);
      fail(XIO_ERR_ARG,
           "xio_mem_register: {} bytes at {} overlap the {} bytes registered at {}; unregister those first", bytes,
           base, r.bytes, reinterpret_cast<void*>(r.base));
    }
  }
  if (empty == dev::k_max_regions)
    fail(XIO_ERR_NO_MEMORY, "xio_mem_register: {} buffers are registered and that is the most; unregister one",
         dev::k_max_regions - 1);
  // The first rows are found soonest.
  for (std::uint32_t i = empty; i < dev::k_max_regions; ++i) {
    if (rows_[i].live != 0 || would_mix(rows_[i], at, bytes)) continue;
    empty = i;
    break;
  }
  rows_[empty] = dev::region_view{at, bytes, {}, {}, 1, 0, 0, {}, {}};
  return empty;
}

std::uint32_t registration::find(void* base) const {
  if (base == nullptr) fail(XIO_ERR_ARG, "xio_mem_unregister: base is null; give the start of the buffer");
  for (std::uint32_t i = 1; i < dev::k_max_regions; ++i)
    if (rows_[i].live != 0 && rows_[i].base == reinterpret_cast<std::uint64_t>(base)) return i;
  fail(XIO_ERR_NOT_REGISTERED,
       "xio_mem_unregister: {} is not the start of a registered buffer; give the same base as to xio_mem_register",
       base);
}

}  // namespace xio::memory
