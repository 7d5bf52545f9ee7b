// SPDX-License-Identifier: MIT
#include "memory/owner.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "memory/kinds.hpp"

namespace xio::memory {
namespace {

constexpr std::size_t k_alignment_max = std::size_t{1} << 30;

std::size_t checked_alignment(std::size_t alignment, const char* function) {
  if (alignment == 0) return gpu::page_size();
  if (!std::has_single_bit(alignment) || alignment > k_alignment_max)
    fail(XIO_ERR_ARG, "{}: alignment {} is no power of two up to {}; use one such as {}", function, alignment,
         k_alignment_max, gpu::page_size());
  return std::max(alignment, gpu::page_size());
}

}  // namespace

owner::owner(xio_mem_kind_t kind, std::size_t bytes, std::size_t alignment, const char* function) {
  check_kind(kind, function);
  if (bytes == 0) fail(XIO_ERR_ARG, "{}: bytes is 0; ask for one at least", function);
  alignment = checked_alignment(alignment, function);
  try {
    block_ = gpu::take(kind, bytes, alignment);
  } catch (const error& e) {
    fail(e.status(), "{}: {}", function, e.what());
  }
}

owner::~owner() {
  if (block_.base != nullptr) gpu::give_back(block_);
}

}  // namespace xio::memory
