// SPDX-License-Identifier: MIT
// Blocks of a drive go to and from memory of the GPU, and only kernels look at them there.
//
//   move KIND NAME OUTER OLD NEW
//       blocks carry OUTER, in the middle half OLD; they are read and checked, and the middle half gets NEW
//   again KIND NAME
//       the middle half is written and read again, by pieces that no stripe shares a border with
//   refused KIND NAME
//       opening the drive, or registering the memory, is refused; the sentence is printed
//   freed NAME
//       memory that is freed while it is registered: the drive writes to the old memory, and to no other
//   register KIND NAME BYTES
//       how long registering that much takes
//   post NAME
//       a kernel posts 32 reads of 4 KiB, for XIO_AMDGPU_COUNTS to count
//   stamp FILE SALT, verify FILE OUTER MIDDLE
//       as of tests/vm/nvme_drive.hip
//
// KIND: heap, the symmetric heap; hip, memory of hipMalloc; else a kind of xio_mem_alloc by its number (xio/memory.h).
#include <xio/memory.h>

#include "../vm/nvme_disk.hpp"

namespace {

using nvme_disk::stamp_of;

constexpr uint64_t k_guard = 4096;
constexpr unsigned char k_before = 0xee;

struct job {
  xio_ctx_t ctx;
  xio_storage_t storage;
  unsigned char* buffer;  // between two guards
  uint64_t first, bytes, disk, outer, inner;
  int* wrong;
};

__device__ uint64_t wanted(const job& j, uint64_t at) {
  return stamp_of(at, at >= j.disk / 4 && at < j.disk / 4 * 3 ? j.inner : j.outer);
}
__device__ void blame(const job& j, bool bad) {
  if (bad) xio::dev::fetch_add<xio::dev::scope::agent, xio::dev::order::relaxed>(j.wrong, 1);
}

// A thread takes every threads-th piece of that many bytes.
template <class Op>
__device__ void each(uint64_t bytes, uint64_t piece, Op op) {
  const uint64_t threads = uint64_t{gridDim.x} * blockDim.x, me = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (uint64_t at = me * piece; at < bytes; at += threads * piece) op(at, piece < bytes - at ? piece : bytes - at);
}

__global__ void poison(job j) {
  auto* words = reinterpret_cast<uint64_t*>(j.buffer - k_guard);
  each(j.bytes + 2 * k_guard, 8, [&](uint64_t at, uint64_t) { words[at / 8] = 0x0101010101010101u * k_before; });
}
__global__ void stamp(job j) {
  each(j.bytes, 8,
       [&](uint64_t at, uint64_t) { *reinterpret_cast<uint64_t*>(j.buffer + at) = wanted(j, j.first + at); });
}
// Pieces that pages of the bus and commands of the drive do not share a border with.
__global__ void read_all(job j) {
  each(j.bytes, 200704,
       [&](uint64_t at, uint64_t n) { xio_read_nbi(j.ctx, j.buffer + at, j.storage, j.first + at, n); });
  blame(j, xio_quiet(j.ctx) != XIO_OK);
}
__global__ void write_all(job j) {
  each(j.bytes, 143360,
       [&](uint64_t at, uint64_t n) { xio_write_nbi(j.ctx, j.buffer + at, j.storage, j.first + at, n); });
  blame(j, xio_quiet(j.ctx) != XIO_OK);
}
__global__ void flush(job j) { blame(j, xio_storage_sync(j.ctx, j.storage) != XIO_OK); }
__global__ void verify(job j) {
  each(j.bytes, 8, [&](uint64_t at, uint64_t) {
    blame(j, *reinterpret_cast<uint64_t*>(j.buffer + at) != wanted(j, j.first + at));
  });
  each(k_guard, 1, [&](uint64_t at, uint64_t) {
    blame(j, j.buffer[at - k_guard] != k_before || j.buffer[j.bytes + at] != k_before);
  });
}
__global__ void verify_poison(job j) {
  each(j.bytes, 1, [&](uint64_t at, uint64_t) { blame(j, j.buffer[at] != k_before); });
}

uint64_t number(const char* text) { return std::strtoull(text, nullptr, 0); }

// Registered and never given back; null where registering is refused, once the drive is open.
unsigned char* memory_of(const rig::team& t, const std::string& kind, uint64_t bytes) {
  if (kind == "heap") return t.symmetric_raw<unsigned char>(bytes);
  void* block = nullptr;
  if (kind == "hip") {
    // It begins in the middle of a piece.
    constexpr uint64_t k_before_it = 17 * 4096;
    MUST(hipMalloc(&block, bytes + k_before_it));
    block = static_cast<unsigned char*>(block) + k_before_it;
  } else {
    MUST(xio_mem_alloc(static_cast<xio_mem_kind_t>(number(kind.c_str())), bytes, nullptr, &block));
  }
  return xio_mem_register(t.world(), block, bytes) == XIO_OK ? static_cast<unsigned char*>(block) : nullptr;
}

xio_status_t open_drive(const rig::team& t, const char* name, job& j) {
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.queues = 2;
  attr.depth = 64;
  const xio_status_t status = xio_storage_open(t.world(), name, &attr, &j.storage);
  uint32_t block = 0;
  if (status == XIO_OK) MUST(xio_storage_size(t.world(), j.storage, &j.disk, &block));
  return status;
}

void expect_right(const rig::device_array<int>& wrong, const char* what) {
  rig::expect(wrong.get()[0] == 0, "%s: %d wrong", what, wrong.get()[0]);
}

void expect_on_gpu(const void* memory) {
#if defined(XIO_ON_HOST)
  (void)memory;
#else
  xio_mem_place_t place = XIO_MEM_PLACE_INIT;
  MUST(xio_mem_where(memory, &place));
  rig::expect(place.side == XIO_MEM_ON_DEVICE, "the memory is in place %d and not on the GPU", place.side);
#endif
}

void move(const rig::team& t, const std::string& kind, const char* name, uint64_t outer, uint64_t old, uint64_t next) {
  const rig::device_array<int> wrong(1);
  job j{t.ctx, {}, nullptr, 0, 0, 0, outer, old, wrong.data()};
  MUST(open_drive(t, name, j));
  j.bytes = j.disk / 2;
  unsigned char* block = memory_of(t, kind, j.bytes + 2 * k_guard);
  if (block == nullptr) rig::give_up("xio_mem_register", xio_last_error());
  expect_on_gpu(block);
  j.buffer = block + k_guard;
  const auto read_half = [&](uint64_t first, uint64_t inner) {
    j.first = first;
    j.inner = inner;
    RUN(poison, 4, 64, j);
    RUN(read_all, 2, 32, j);
    RUN(verify, 4, 64, j);
    expect_right(wrong, "blocks that were read");
  };
  read_half(0, old);
  read_half(j.bytes, old);
  j.first = j.disk / 4;
  j.inner = next;
  RUN(stamp, 4, 64, j);
  RUN(write_all, 2, 32, j);
  RUN(flush, 1, 1, j);
  read_half(j.disk / 4, next);
  MUST(xio_storage_close(t.world(), j.storage));
}

void again(const rig::team& t, const std::string& kind, const char* name) {
  const rig::device_array<int> wrong(1);
  job j{t.ctx, {}, nullptr, 0, 0, 0, 7, 7, wrong.data()};
  MUST(open_drive(t, name, j));
  j.bytes = j.disk / 2;
  j.first = j.disk / 4;
  unsigned char* block = memory_of(t, kind, j.bytes + 2 * k_guard);
  if (block == nullptr) rig::give_up("xio_mem_register", xio_last_error());
  expect_on_gpu(block);
  j.buffer = block + k_guard;
  RUN(stamp, 4, 64, j);
  RUN(write_all, 2, 32, j);
  RUN(flush, 1, 1, j);
  RUN(poison, 4, 64, j);
  RUN(read_all, 2, 32, j);
  RUN(verify, 4, 64, j);
  expect_right(wrong, "blocks that were written and read");
  MUST(xio_storage_close(t.world(), j.storage));
}

void refused(const rig::team& t, const std::string& kind, const char* name) {
  job j{};
  xio_status_t status = open_drive(t, name, j);
  if (status == XIO_OK && memory_of(t, kind, 1 << 20) == nullptr) status = XIO_ERR_UNSUPPORTED;
  rig::expect(status != XIO_OK, "a drive was given memory of the kind %s", kind.c_str());
  std::printf("refused %s: %s\n", name, xio_last_error());
}

// The exporter keeps what is pinned until it is unpinned, so addresses that are used again are other memory.
void freed(const rig::team& t, const char* name) {
  constexpr uint64_t k_bytes = 4 << 20;
  const rig::device_array<int> wrong(1);
  job j{t.ctx, {}, nullptr, 0, k_bytes - 2 * k_guard, 0, 0, 0, wrong.data()};
  MUST(open_drive(t, name, j));
  void *old = nullptr, *again = nullptr;
  MUST(hipMalloc(&old, k_bytes));
  MUST(xio_mem_register(t.world(), old, k_bytes));
  MUST(hipFree(old));
  MUST(hipMalloc(&again, k_bytes));
  std::printf("freed: %s\n", again == old ? "the same addresses" : "other addresses");
  j.buffer = static_cast<unsigned char*>(again) + k_guard;
  RUN(poison, 4, 64, j);
  job through = j;
  through.buffer = static_cast<unsigned char*>(old) + k_guard;
  RUN(read_all, 2, 32, through);
  RUN(verify_poison, 4, 64, j);
  expect_right(wrong, "memory that took the place of what was freed");
  if (again == old)
    rig::expect(xio_mem_register(t.world(), again, k_bytes) == XIO_ERR_ARG, "one address was registered twice");
  MUST(hipFree(again));
  MUST(xio_mem_unregister(t.world(), old));  // the log names what was freed
  MUST(xio_storage_close(t.world(), j.storage));
}

void time_registering(const rig::team& t, const std::string& kind, const char* name, uint64_t bytes) {
  job j{};
  MUST(open_drive(t, name, j));
  void* block = nullptr;
  MUST(hipMalloc(&block, bytes));
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto from = std::chrono::steady_clock::now();
    MUST(xio_mem_register(t.world(), block, bytes));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
    best = took.count() < best ? took.count() : best;
    MUST(xio_mem_unregister(t.world(), block));
  }
  std::printf("registering %llu bytes of %s: %.2f ms\n", static_cast<unsigned long long>(bytes), kind.c_str(), best);
  MUST(hipFree(block));
  MUST(xio_storage_close(t.world(), j.storage));
}

constexpr uint32_t k_posts = 32;
__device__ void post_each(const job& j) {
  for (uint32_t i = 0; i < k_posts; ++i)
    xio_read_nbi(j.ctx, j.buffer + i * uint64_t{4096}, j.storage, i * uint64_t{4096}, 4096);
}
// With the registers that a workgroup of 1024 leaves each lane, and with those of one wave.
__global__ void post_reads(job j) { post_each(j); }
__global__ __launch_bounds__(64) void post_reads_by_wave(job j) { post_each(j); }
__global__ void finish_reads(job j) { blame(j, xio_quiet(j.ctx) != XIO_OK); }

void post(const rig::team& t, const char* name) {
  const rig::device_array<int> wrong(1);
  job j{t.ctx, {}, nullptr, 0, 0, 0, 0, 0, wrong.data()};
  MUST(open_drive(t, name, j));
  j.buffer = t.symmetric_raw<unsigned char>(8 << 20) + (4 << 20);
  RUN(post_reads, 1, 1, j);
  RUN(finish_reads, 1, 1, j);
  RUN(post_reads_by_wave, 1, 1, j);
  RUN(finish_reads, 1, 1, j);
  expect_right(wrong, "reads that were posted");
  MUST(xio_storage_close(t.world(), j.storage));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[1] : "";
  if (verb == "stamp" && argc == 4) return nvme_disk::stamp(argv[2], number(argv[3]));
  if (verb == "verify" && argc == 5) return nvme_disk::verify(argv[2], number(argv[3]), number(argv[4]));
  const rig::team t;
  if (verb == "move" && argc == 7)
    move(t, argv[2], argv[3], number(argv[4]), number(argv[5]), number(argv[6]));
  else if (verb == "again" && argc == 4)
    again(t, argv[2], argv[3]);
  else if (verb == "refused" && argc == 4)
    refused(t, argv[2], argv[3]);
  else if (verb == "register" && argc == 5)
    time_registering(t, argv[2], argv[3], number(argv[4]));
  else if (verb == "post")
    post(t, argv[2]);
  else if (verb == "freed")
    freed(t, argv[2]);
  else
    rig::give_up("device_memory", "wrong arguments");
  return rig::verdict("device_memory", t, false);
}
