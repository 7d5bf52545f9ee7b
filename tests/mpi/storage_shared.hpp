// SPDX-License-Identifier: MIT
// One file that all PEs have open.
#pragma once
#include <fstream>
#include <iterator>

#include "rig.hpp"

constexpr uint64_t k_shared = 10000, k_grown = 100001;

// Every n-th piece of 7 bytes, from the me-th on, is this PE's: PEs and threads write side by side in the same blocks.
__global__ void weave(xio_ctx_t ctx, xio_storage_t s, unsigned char* memory, uint64_t me, uint64_t n, int* wrong) {
  for (uint64_t at = 7 * (threadIdx.x * n + me); at < k_shared; at += 7 * blockDim.x * n) {
    const uint64_t left = k_shared - at;
    if (xio_write(ctx, memory + at, s, at, left < 7 ? left : 7) != XIO_OK) *wrong = 1;
  }
}

__global__ void move_one(xio_ctx_t ctx, xio_storage_t s, bool writes, unsigned char* buffer, uint64_t offset,
                         uint64_t bytes, int* status) {
  *status = writes ? xio_write(ctx, buffer, s, offset, bytes) : xio_read(ctx, buffer, s, offset, bytes);
  (void)xio_quiet(ctx);  // of a call that was refused, too
}

// One file of all PEs: nothing is lost between neighbours, and each sees the size that one gives it.
inline void shared(rig::team& t, unsigned char* memory, const std::string& directory) {
  const std::string path = directory + "/xio_storage_shared";
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.bytes = k_shared;
  attr.flags = t.me == 0 ? XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE : 0;
  attr.block_bytes = 4096;
  xio_storage_t s{};
  if (t.me == 0) MUST(xio_storage_open(t.world(), ("file:" + path).c_str(), &attr, &s));
  MUST(xio_host_barrier(t.world()));
  if (t.me != 0) MUST(xio_storage_open(t.world(), ("file:" + path).c_str(), &attr, &s));
  std::vector<unsigned char> wanted(k_grown);
  for (size_t i = 0; i < k_shared; ++i) wanted[i] = rig::pattern(5000, i);
  rig::team::write(memory, wanted);
  rig::device_array<int> wrong(1), status(1);
  RUN(weave, 1, 64, t.ctx, s, memory, static_cast<uint64_t>(t.me), static_cast<uint64_t>(t.n), wrong.data());
  rig::expect(wrong.get()[0] == 0, "a write beside others failed");
  const auto one = [&](bool writes, uint64_t buffer, uint64_t offset, uint64_t bytes) {
    RUN(move_one, 1, 1, t.ctx, s, writes, memory + buffer, offset, bytes, status.data());
    return static_cast<xio_status_t>(status.get()[0]);
  };
  rig::expect_status(one(false, 0, k_shared - 1, 2), XIO_ERR_ARG, "before it grows");
  MUST(xio_host_barrier(t.world()));
  if (t.me == 0) MUST(xio_storage_grow(t.world(), s, k_grown));
  MUST(xio_host_barrier(t.world()));
  if (t.me != 0) MUST(xio_storage_grow(t.world(), s, t.me % 2 == 0 ? 0 : k_shared + 1));
  uint64_t bytes = 0;
  MUST(xio_storage_size(t.world(), s, &bytes, nullptr));
  rig::expect(bytes == k_grown, "after it grew: %llu bytes", rig::ull(bytes));
  rig::expect_status(one(false, 0, 0, k_grown), XIO_OK, "all that it has");
  rig::expect_same(rig::team::read(memory, k_grown), wanted, "what all PEs wrote, and zeroes");
  MUST(xio_host_barrier(t.world()));
  if (t.me == t.n - 1) rig::expect_status(one(true, 5, k_grown - 3, 3), XIO_OK, "the last bytes");
  std::copy_n(wanted.begin() + 5, 3, wanted.end() - 3);
  MUST(xio_host_barrier(t.world()));
  std::ifstream in(path, std::ios::binary);
  rig::expect_same({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}, wanted, "the file");
  MUST(xio_host_barrier(t.world()));
  MUST(xio_storage_close(t.world(), s));
  if (t.me == 0) unlink(path.c_str());
}
