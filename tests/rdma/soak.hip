// SPDX-License-Identifier: MIT
// A long way between two PEs: XIO_SOAK_BYTES (1 GiB) in blocks of mixed sizes, by puts with a signal and by gets, each
// block with a CRC-32 that the receiving side works out for itself. Any failure ends it with a status.
#include "../mpi/rig.hpp"

namespace {

constexpr uint32_t k_block_max = 1 << 20;
constexpr uint32_t k_blocks_per_kernel = 64;

uint64_t bytes_wanted() {
  const char* text = std::getenv("XIO_SOAK_BYTES");
  if (text == nullptr) return uint64_t{1} << 30;
  char* end = nullptr;
  const unsigned long long v = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || v == 0) rig::give_up("XIO_SOAK_BYTES", "not a number of bytes");
  return v;
}

// CRC-32 of IEEE 802.3, reflected, as zlib has it.
struct crc_table {
  uint32_t of[256];
};
crc_table make_table() {
  crc_table t;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    t.of[i] = c;
  }
  return t;
}
XIO_HOST_DEVICE uint32_t crc_of(const crc_table& t, const unsigned char* at, uint32_t bytes) {
  uint32_t c = 0xffffffffu;
  for (uint32_t i = 0; i < bytes; ++i) c = t.of[(c ^ at[i]) & 0xff] ^ (c >> 8);
  return ~c;
}

XIO_HOST_DEVICE uint32_t size_of(uint64_t block) {
  // Here and not outside: device code has no host arrays.
  const uint32_t sizes[] = {8, 1 << 20, 4096, 65536, 65537, 1, 262144, 100003, 31, 524288, 1023, 786433};
  return sizes[block % (sizeof sizes / sizeof sizes[0])];
}
// Where in the sender's source a block begins: no two neighbours share data.
XIO_HOST_DEVICE uint32_t offset_of(uint64_t block) { return static_cast<uint32_t>(block * 4099 % k_block_max); }

struct job {
  unsigned char* source;   // symmetric, 2 * k_block_max, pattern of its PE
  unsigned char* put_in;   // symmetric: where the peer puts
  unsigned char* get_in;   // symmetric: where gets arrive
  uint64_t *came, *taken;  // signals
  const crc_table* table;
  int me, peer;
};
struct tally {
  uint64_t blocks, bytes, wrong;
  int status;
};

__device__ bool good(tally* out, xio_status_t s) {
  if (s != XIO_OK) out->status = s;
  return s == XIO_OK;
}

// Computes the CRC that the peer's source must have, from its pattern and not from the bytes that came.
__device__ uint32_t wanted_crc(const crc_table& t, int pe, uint64_t block) {
  uint32_t c = 0xffffffffu;
  for (uint32_t i = 0; i < size_of(block); ++i)
    c = t.of[(c ^ rig::pattern(pe, offset_of(block) + i)) & 0xff] ^ (c >> 8);
  return ~c;
}

__device__ void check(const job& j, const unsigned char* at, uint64_t block, tally* out) {
  if (crc_of(*j.table, at, size_of(block)) != wanted_crc(*j.table, j.peer, block)) ++out->wrong;
  out->bytes += size_of(block);
  ++out->blocks;
}

// Blocks [first, last), one thread: puts to the peer while the peer puts here, and every third by get.
__global__ void move(xio_ctx_t ctx, job j, uint64_t first, uint64_t last, tally* out) {
  for (uint64_t b = first; b < last; ++b) {
    if (b % 3 == 2) {
      if (!good(out, xio_get(ctx, j.get_in, j.source + offset_of(b), size_of(b), j.peer))) return;
      check(j, j.get_in, b, out);
      continue;
    }
    if (!good(out, xio_signal_wait_until(ctx, j.taken, XIO_CMP_GE, b))) return;
    xio_put_signal_nbi(ctx, j.put_in, j.source + offset_of(b), size_of(b), j.came, b + 1, XIO_SIGNAL_SET, j.peer);
    if (!good(out, xio_signal_wait_until(ctx, j.came, XIO_CMP_GE, b + 1))) return;
    check(j, j.put_in, b, out);
    // Says how far the peer may go: gets need no leave.
    const uint64_t next = (b + 1) % 3 == 2 ? b + 2 : b + 1;
    if (!good(out, xio_signal_op(ctx, j.taken, next, XIO_SIGNAL_SET, j.peer))) return;
  }
  (void)good(out, xio_quiet(ctx));
}

}  // namespace

int main() {
  const uint64_t wanted = bytes_wanted();
  // Never destroyed as a team: its destructor wants success.
  auto& t = *new rig::team();
  if (t.n != 2) rig::give_up("soak", "run it on two PEs");
  const rig::device_array<crc_table> table(std::vector<crc_table>{make_table()});
  job j{};
  j.source = t.symmetric<unsigned char>(2 * k_block_max);
  j.put_in = t.symmetric<unsigned char>(k_block_max);
  j.get_in = t.symmetric<unsigned char>(k_block_max);
  j.came = t.symmetric<uint64_t>(1);
  j.taken = t.symmetric<uint64_t>(1);
  j.table = table.data();
  j.me = t.me;
  j.peer = 1 - t.me;
  rig::team::write(j.source, rig::source_of(t.me, 2 * k_block_max));
  const rig::device_array<tally> sum(1);
  t.barrier();
  std::printf("moving\n");
  std::fflush(stdout);
  const auto from = std::chrono::steady_clock::now();
  tally now{};
  for (uint64_t block = 0; now.bytes < wanted && now.status == XIO_OK && now.wrong == 0; block += k_blocks_per_kernel) {
    RUN(move, 1, 1, t.ctx, j, block, block + k_blocks_per_kernel, sum.data());
    now = sum.get()[0];
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  rig::expect_status(now.status, XIO_OK, "the transfer");
  rig::expect(now.wrong == 0, "%llu blocks arrived wrong", rig::ull(now.wrong));
  std::printf("soak: PE %d, route %s: %llu blocks, %llu bytes in %.1f s, %.1f MB/s with CRC, %llu wrong, %s\n", t.me,
              t.route.c_str(), rig::ull(now.blocks), rig::ull(now.bytes), seconds,
              static_cast<double>(now.bytes) / seconds / 1e6, rig::ull(now.wrong),
              xio_status_name(static_cast<xio_status_t>(now.status)));
  std::fflush(stdout);
  // After a loss these say so as well; what counts is that they come back.
  const xio_status_t met = now.status == XIO_OK ? xio_host_barrier(t.world()) : XIO_OK;
  rig::expect_status(met, XIO_OK, "the barrier at the end");
  (void)xio_ctx_destroy(t.world(), t.ctx);
  (void)xio_finalize(t.world());
  std::_Exit(rig::failures == 0 ? 0 : 1);
}
