// SPDX-License-Identifier: MIT
// Single values, rows of them, strides and tiles: every element and everything between the elements.
#include "rig.hpp"

using rig::scope;

namespace {

constexpr size_t k_bytes = 256 * 1024;

// --- One value ---------------------------------------------------------------------------------------

template <class T>
XIO_HOST_DEVICE T value_of(int pe, uint32_t i) {
  unsigned char bytes[sizeof(T)];
  for (uint32_t k = 0; k < sizeof(T); ++k) bytes[k] = rig::pattern(pe, i * sizeof(T) + k);
  T value;
  __builtin_memcpy(&value, bytes, sizeof value);
  return value;
}

// Puts element i, 2i of them apart, and gets the own element back from where a neighbour has put it.
template <class T>
__global__ void put_values(xio_ctx_t ctx, T* dst, uint32_t count, int me, int to, int* bad) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
    if (xio_p(ctx, dst + 2 * i, value_of<T>(me, i), to) != XIO_OK) *bad = 1;
  if (xio_quiet(ctx) != XIO_OK) *bad = 2;
}
template <class T>
__global__ void get_values(xio_ctx_t ctx, const T* src, unsigned char* out, uint32_t count, int from) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const T value = xio_g(ctx, src + 2 * i, from);
    __builtin_memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
void values(const rig::team& t, unsigned char* area, const char* type) {
  constexpr uint32_t count = 300;
  std::vector<unsigned char> wanted(2 * count * sizeof(T), rig::k_poison);
  rig::team::write(area, wanted);
  const std::string put = rig::text("xio_p<%s>", type), got = rig::text("xio_g<%s>", type);
  rig::expect_steps(t, put, put_values<T>, 1, 100, t.ctx, reinterpret_cast<T*>(area), count, t.me, t.right);
  const std::vector<unsigned char> theirs = rig::source_of(t.left, count * sizeof(T));
  for (uint32_t i = 0; i < count; ++i)
    std::memcpy(wanted.data() + 2 * i * sizeof(T), theirs.data() + i * sizeof(T), sizeof(T));
  rig::expect_same(rig::team::read(area, wanted.size()), wanted, put.c_str());

  const rig::device_array<unsigned char> out(count * sizeof(T));
  RUN(get_values<T>, 1, 100, t.ctx, reinterpret_cast<const T*>(area), out.data(), count, t.right);
  rig::expect_same(out.get(), rig::source_of(t.me, count * sizeof(T)), got.c_str());
  t.barrier();
}

// --- Rows of values ----------------------------------------------------------------------------------

// Every lane puts the value beside the one of the lane before it. A NIC may take those of a wave in one entry.
template <class T>
__global__ void put_row(xio_ctx_t ctx, T* dst, uint32_t first, int me, int to, int* bad) {
  const uint32_t i = first + threadIdx.x;
  if (xio_p(ctx, dst + i, value_of<T>(me, i), to) != XIO_OK) *bad = 1;
  if (xio_quiet(ctx) != XIO_OK) *bad = 2;
}

// One block's queue to the PE: the slots that ops have taken so far, and how much one entry takes.
struct queue_facts {
  uint64_t slots;
  uint32_t gather_bytes, depth, wave;
  bool blocks;  // an entry of mlx5 has as many slots of 64 bytes as it needs, of other families one
};
__global__ void look_at_queue(xio_ctx_t ctx, int to, queue_facts* out) {
  const xio::dev::ring_view& r = static_cast<const xio::dev::ctx_view*>(ctx.view)->peers[to].rdma[0];
  const bool blocks = r.kind == xio::dev::ring_kind::mlx5;
  *out = {r.state->issued, r.rdma.gather_bytes, r.depth, static_cast<uint32_t>(warpSize), blocks};
}

// The slots that rows of 1 to `most` lanes take.
uint64_t slots_of_rows(const queue_facts& q, uint32_t most, uint32_t width) {
  uint64_t slots = 0;
  const bool gathers = q.gather_bytes >= 2 * width && q.gather_bytes / 64 < q.depth / 4;
  const uint32_t per_entry = gathers ? q.gather_bytes / width : 1;
  for (uint32_t row = 1; row <= most; ++row)
    for (uint32_t left = row, turn; left != 0; left -= turn) {
      const uint32_t to_end_of_wave = (left - 1) % q.wave + 1;
      turn = to_end_of_wave < per_entry ? to_end_of_wave : per_entry;
      slots += q.blocks ? (36 + turn * width + 63) / 64 : 1;
    }
  return slots;
}

template <class T>
void rows(const rig::team& t, unsigned char* area, const char* type) {
  constexpr uint32_t lanes = 128, guard = 3, values = lanes * (lanes + 1) / 2;
  const bool posts = t.route == "rdma";
  std::vector<unsigned char> wanted((values + (lanes + 1) * guard) * sizeof(T), rig::k_poison);
  const std::vector<unsigned char> theirs = rig::source_of(t.left, wanted.size());
  rig::team::write(area, wanted);
  t.barrier();
  const rig::device_array<int> bad(1);
  const rig::device_array<queue_facts> queue(2);
  xio_engine_stats_t before = XIO_ENGINE_STATS_INIT, after = XIO_ENGINE_STATS_INIT;
  MUST(xio_ctx_stats(t.world(), t.ctx, XIO_ROUTE_RDMA, &before));
  if (posts) RUN(look_at_queue, 1, 1, t.ctx, t.right, queue.data());
  uint32_t at = guard;
  for (uint32_t row = 1; row <= lanes; at += row + guard, ++row) {
    RUN(put_row<T>, 1, row, t.ctx, reinterpret_cast<T*>(area), at, t.me, t.right, bad.data());
    std::memcpy(wanted.data() + at * sizeof(T), theirs.data() + at * sizeof(T), row * sizeof(T));
  }
  if (posts) RUN(look_at_queue, 1, 1, t.ctx, t.right, queue.data() + 1);
  MUST(xio_ctx_stats(t.world(), t.ctx, XIO_ROUTE_RDMA, &after));
  t.barrier();
  const std::string name = rig::text("rows of xio_p<%s>", type);
  const char* const what = name.c_str();
  rig::expect(bad.get()[0] == 0, "%s: an op failed", what);
  rig::expect_same(rig::team::read(area, wanted.size()), wanted, what);
  const uint64_t ops = after.ops - before.ops, bytes = after.bytes - before.bytes;
  rig::expect(ops == (posts ? values : 0) && bytes == ops * sizeof(T), "%s: %llu ops of %llu bytes", what,
              rig::ull(ops), rig::ull(bytes));
#if defined(XIO_ON_HOST)  // where lanes surely come together
  const queue_facts q = queue.get()[1];
  const uint64_t slots = q.slots - queue.get()[0].slots, right = posts ? slots_of_rows(q, lanes, sizeof(T)) : 0;
  rig::expect(slots == right, "%s: %llu slots, expected %llu", what, rig::ull(slots), rig::ull(right));
#endif
  t.barrier();
}

// Poisons `bytes` of every PE's dst, lets all of them move(), and expects good statuses and what `lay` makes of the
// poison by the source of the PE that this one's data comes from.
template <class Move, class Lay>
void expect_moved(const rig::team& t, unsigned char* dst, size_t bytes, bool by_put, const std::string& what,
                  const Move& move, const Lay& lay) {
  std::vector<unsigned char> wanted(bytes, rig::k_poison);
  rig::team::write(dst, wanted);
  t.barrier();
  const int status = move();
  t.barrier();
  lay(wanted.data(), rig::source_of(by_put ? t.left : t.right, k_bytes).data());
  rig::expect_status(status, XIO_OK, what.c_str());
  rig::expect_same(rig::team::read(dst, bytes), wanted, what.c_str());
  t.barrier();
}

// --- Strides -----------------------------------------------------------------------------------------

struct stride_case {
  uint32_t dst_stride, src_stride, count;
};

template <class T, bool Put>
__global__ void strided(xio_ctx_t ctx, T* dst, const T* src, stride_case s, int pe, int* status) {
  *status = Put ? xio_iput(ctx, dst, src, s.dst_stride, s.src_stride, s.count, pe)
                : xio_iget(ctx, dst, src, s.dst_stride, s.src_stride, s.count, pe);
  const xio_status_t last = xio_quiet(ctx);
  if (*status == XIO_OK) *status = last;
}

template <class T, bool Put>
void strides(const rig::team& t, unsigned char* dst, unsigned char* src, const char* type) {
  for (const stride_case s : {stride_case{1, 1, 0}, {1, 1, 1}, {1, 1, 77}, {3, 1, 77}, {1, 5, 77}, {7, 2, 200}}) {
    const std::string what = rig::text("%s<%s>, strides %u and %u, %u elements", Put ? "xio_iput" : "xio_iget", type,
                                       s.dst_stride, s.src_stride, s.count);
    const auto move = [&] {
      return rig::result_of(strided<T, Put>, 1, 1, t.ctx, reinterpret_cast<T*>(dst) + 1,
                            reinterpret_cast<const T*>(src) + 2, s, t.right);
    };
    expect_moved(t, dst, 8 * 200 * sizeof(T), Put, what, move, [&](unsigned char* to, const unsigned char* from) {
      for (uint32_t i = 0; i < s.count; ++i)
        std::memcpy(to + (1 + i * s.dst_stride) * sizeof(T), from + (2 + i * s.src_stride) * sizeof(T), sizeof(T));
    });
  }
}

// --- Tiles -------------------------------------------------------------------------------------------

struct tile {
  uint32_t dst_pitch, src_pitch, width, height;
};

template <scope S, bool Puts>
__global__ void move_tile(xio_ctx_t ctx, unsigned char* dst, const unsigned char* src, tile s, int pe, int* status) {
  xio_status_t got;
  if constexpr (Puts)
    got = RIG_BY_SCOPE(S, xio_put_2d, ctx, dst, s.dst_pitch, src, s.src_pitch, s.width, s.height, pe);
  else
    got = RIG_BY_SCOPE(S, xio_get_2d, ctx, dst, s.dst_pitch, src, s.src_pitch, s.width, s.height, pe);
  const xio_status_t last = Puts ? xio_quiet(ctx) : XIO_OK;
  if (got != XIO_OK) *status = got;
  if (last != XIO_OK) *status = last;
}

// Writer or reader: a put goes to the right, a get comes from there.
template <scope S, bool Puts>
void tiles(const rig::team& t, unsigned char* dst, unsigned char* src) {
  for (const tile s : {tile{64, 64, 0, 5},
                       {64, 64, 64, 0},
                       {64, 64, 64, 9},
                       {100, 80, 33, 17},
                       {4097, 4096, 4096, 13},
                       {13, 11, 7, 1},
                       {300, 1000, 256, 64}}) {
    const std::string what =
        rig::text("xio_%s_2d by a %s, %u x %u bytes", Puts ? "put" : "get", rig::k_scope_names[S], s.width, s.height);
    const auto move = [&] {
      return rig::result_of(move_tile<S, Puts>, 1, rig::k_threads_of[S], t.ctx, dst + 5, src + 3, s, t.right);
    };
    expect_moved(t, dst, s.dst_pitch * (s.height + 1) + 64, Puts, what, move,
                 [&](unsigned char* to, const unsigned char* from) {
                   for (uint32_t row = 0; row < s.height; ++row)
                     std::memcpy(to + 5 + row * s.dst_pitch, from + 3 + row * s.src_pitch, s.width);
                 });
  }
}

// --- Staged ------------------------------------------------------------------------------------------

constexpr uint32_t k_stage = 8192;

// One thread of several; the others show that the stage is theirs again afterwards.
__global__ void staged(xio_ctx_t ctx, unsigned char* dst, unsigned char* src, uint32_t bytes, bool puts, int pe,
                       int* status) {
  HIP_DYNAMIC_SHARED(unsigned char, memory)
  auto* stage = reinterpret_cast<unsigned char*>((reinterpret_cast<uintptr_t>(memory) + 127) & ~uintptr_t{127});
  if (threadIdx.x == 0) {
    *status = puts ? xio_put_staged(ctx, dst, src, bytes, stage, k_stage, pe)
                   : xio_get_staged(ctx, dst, src, bytes, stage, k_stage, pe);
    const xio_status_t last = xio_quiet(ctx);
    if (*status == XIO_OK) *status = last;
  }
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < k_stage; i += blockDim.x) stage[i] = rig::k_poison;
}

// By the bulk copy unit where there is one: more than its stages hold, ends that it cannot take, sides that disagree.
void staged_copies(const rig::team& t, unsigned char* dst, unsigned char* src) {
  struct row {
    uint32_t bytes, dst_at, src_at;
  };
  for (const row& r : {row{16, 0, 0}, row{512, 0, 0}, row{1024, 16, 48}, row{4099, 5, 5}, row{65536, 0, 0},
                       row{100003, 13, 29}, row{3000, 1, 2}}) {
    for (const bool puts : {true, false}) {
      const auto move = [&] {
        const rig::device_array<int> status(1);
        hipLaunchKernelGGL(staged, dim3(1), dim3(64), k_stage + 128, nullptr, t.ctx, dst + r.dst_at, src + r.src_at,
                           r.bytes, puts, t.right, status.data());
        MUST(hipDeviceSynchronize());
        return status.get()[0];
      };
      expect_moved(
          t, dst, r.bytes + 256, puts,
          std::string("staged ") + (puts ? "put" : "get") + " of " + std::to_string(r.bytes) + " bytes", move,
          [&](unsigned char* to, const unsigned char* from) { std::memcpy(to + r.dst_at, from + r.src_at, r.bytes); });
    }
  }
}

}  // namespace

int main() {
  const rig::team t;
  auto* dst = t.symmetric<unsigned char>(k_bytes);
  auto* src = t.symmetric<unsigned char>(k_bytes);
  rig::team::write(src, rig::source_of(t.me, k_bytes));
  values<signed char>(t, dst, "signed char");
  values<unsigned short>(t, dst, "unsigned short");
  values<int>(t, dst, "int");
  values<unsigned long long>(t, dst, "unsigned long long");
  values<float>(t, dst, "float");
  values<double>(t, dst, "double");
  rows<unsigned char>(t, dst, "unsigned char");
  rows<short>(t, dst, "short");
  rows<float>(t, dst, "float");
  rows<double>(t, dst, "double");
  strides<unsigned char, true>(t, dst, src, "unsigned char");
  strides<short, false>(t, dst, src, "short");
  strides<float, true>(t, dst, src, "float");
  strides<double, true>(t, dst, src, "double");
  strides<double, false>(t, dst, src, "double");
  tiles<rig::thread, true>(t, dst, src);
  tiles<rig::thread, false>(t, dst, src);
  tiles<rig::wave, true>(t, dst, src);
  tiles<rig::wave, false>(t, dst, src);
  tiles<rig::workgroup, true>(t, dst, src);
  tiles<rig::workgroup, false>(t, dst, src);
  staged_copies(t, dst, src);
  return rig::verdict("shapes", t);
}
