// SPDX-License-Identifier: MIT
// kv_fetch: pages of a key-value cache come from a drive of PE 0 into the memory of the PEs that go on with the text.
//
//   mpirun -np 2 examples/kv_fetch FILE [PAGES [PAGE_BYTES]]   (or: xiorun -n 2 ...); FILE must not exist
//   mpirun -np 2 examples/kv_fetch kmod:0000:3b:00.0/1 ...     a drive (nvme: too), which loses what is in its first
//   blocks
//
// The lesson: storage and network share one order. A completed read may be put at once, without quiet or host; every
// page has a signal of its own, so a reader can use the first while the last is still on the drive. Pages lie on the
// drive as they were evicted, the block table says where, and they arrive in the order of the text.
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "arguments.hpp"
#include "session.hpp"

namespace {

struct cache {
  xio_ctx_t ctx;
  xio_storage_t drive;
  unsigned char* stage;      // symmetric: PE 0's pages between drive and network
  unsigned char* kv;         // symmetric: a PE's pages, in the order of the text
  uint64_t* ready;           // symmetric: a signal for each page
  const uint64_t* block_of;  // the block table: where page i of the text lies on the drive
  uint64_t pages, page_bytes;
  int readers;
  int* status;
};

__host__ __device__ unsigned char byte_at(uint64_t page, uint64_t i) {
  return static_cast<unsigned char>(((page << 32 | i) * 6364136223846793005u + 1442695040888963407u) >> 56);
}

// A thread for each page: evicts it to the drive, and leaves nothing of it here.
__global__ void evict(cache c) {
  const uint64_t page = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned char* buffer = c.stage + page * c.page_bytes;
  if (page < c.pages) {
    for (uint64_t i = 0; i < c.page_bytes; ++i) buffer[i] = byte_at(page, i);
    keep(c.status, xio_write(c.ctx, buffer, c.drive, c.block_of[page] * c.page_bytes, c.page_bytes));
    for (uint64_t i = 0; i < c.page_bytes; ++i) buffer[i] = 0;
  }
}

// A thread for each page: all reads are posted before the first is waited for.
__global__ void fetch(cache c) {
  const uint64_t page = blockIdx.x * blockDim.x + threadIdx.x;
  if (page < c.pages) {
    unsigned char* buffer = c.stage + page * c.page_bytes;
    const xio_req_t reading = xio_read_nbi(c.ctx, buffer, c.drive, c.block_of[page] * c.page_bytes, c.page_bytes);
    const xio_status_t s = xio_wait(c.ctx, reading);
    keep(c.status, s);
    // Page i belongs to reader i mod readers; with one PE alone that is PE 0 itself.
    const uint64_t readers = static_cast<uint64_t>(c.readers), place = page / readers;
    const int pe = static_cast<int>(page % readers) + (xio_n_pes(c.ctx) > 1 ? 1 : 0);
    if (s == XIO_OK)
      xio_put_signal_nbi(c.ctx, c.kv + place * c.page_bytes, buffer, c.page_bytes, &c.ready[place], 1, XIO_SIGNAL_SET,
                         pe);
  }
  keep(c.status, xio_quiet(c.ctx));
}

// A workgroup for each page: waits for that page only, and reads all of it, as attention would.
__global__ void attend(cache c, uint64_t first, unsigned long long* wrong) {
  const uint64_t place = blockIdx.x, page = first + place * static_cast<uint64_t>(c.readers);
  const xio_status_t s = xio_signal_wait_until(c.ctx, &c.ready[place], XIO_CMP_EQ, 1);
  keep(c.status, s);
  if (s != XIO_OK) return;
  for (uint64_t i = threadIdx.x; i < c.page_bytes; i += blockDim.x)
    if (c.kv[place * c.page_bytes + i] != byte_at(page, i)) atomicAdd(wrong, 1ull);
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "kv_fetch FILE|DRIVE [PAGES [PAGE_BYTES]]");
  const std::string file = given.text("FILE");
  cache c{};
  c.pages = given.number("PAGES", 100, 1, 65536);
  c.page_bytes = given.number("PAGE_BYTES", 4096, 512, 1 << 20);
  given.end();
  if (c.page_bytes % 512 != 0) leave(2, "PAGE_BYTES wants a multiple of 512");
  session s;
  const bool drive = file.rfind("nvme:", 0) == 0 || file.rfind("kmod:", 0) == 0, makes_file = s.me == 0 && !drive;
  const int fd = makes_file ? open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
  if (makes_file && fd < 0 && errno == EEXIST) leave(2, "'%s' exists; name a new file", file.c_str());
  if (makes_file && fd < 0) leave(1, "cannot make '%s': %s", file.c_str(), std::strerror(errno));
  // It needs no name any more, and so goes with the program, however that ends.
  if (makes_file) unlink(file.c_str());
  c.ctx = s.ctx;
  c.status = s.status;
  c.readers = s.n > 1 ? s.n - 1 : 1;
  c.stage = s.symmetric<unsigned char>(c.pages * c.page_bytes);
  c.kv = s.symmetric<unsigned char>(c.pages * c.page_bytes);
  c.ready = s.symmetric<uint64_t>(c.pages);
  std::vector<uint64_t> table(c.pages);
  for (uint64_t i = 0; i < c.pages; ++i) table[i] = c.pages - 1 - i;
  session::write(const_cast<uint64_t*>(c.block_of = s.symmetric<uint64_t>(c.pages)), table);
  s.barrier();

  const unsigned groups = static_cast<unsigned>((c.pages + 63) / 64);
  if (s.me == 0) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    attr.bytes = c.pages * c.page_bytes;
    const std::string name = drive ? file : "file:/proc/self/fd/" + std::to_string(fd);
    check(xio_storage_open(s.world, name.c_str(), &attr, &c.drive), file.c_str());
    hipLaunchKernelGGL(evict, dim3(groups), dim3(64), 0, nullptr, c);
    s.wait("evict");
    hipLaunchKernelGGL(fetch, dim3(groups), dim3(64), 0, nullptr, c);
  }
  // Beside the PE that fetches; alone, after it.
  auto* wrong = session::on_host<unsigned long long>(1);
  const uint64_t first = s.n > 1 ? static_cast<uint64_t>(s.me) - 1 : 0;
  const uint64_t mine = (s.n > 1 && s.me == 0) || first >= c.pages ? 0 : (c.pages - first - 1) / c.readers + 1;
  if (mine != 0) hipLaunchKernelGGL(attend, dim3(static_cast<unsigned>(mine)), dim3(64), 0, nullptr, c, first, wrong);
  s.wait("fetch, attend");
  std::printf("PE %d: %llu pages of %llu bytes, %llu bytes wrong\n", s.me, static_cast<unsigned long long>(mine),
              static_cast<unsigned long long>(c.page_bytes), *wrong);
  if (s.me == 0) {
    check(xio_storage_close(s.world, c.drive), "xio_storage_close");
    if (makes_file) close(fd);
  }
  return s.end(*wrong);
}
