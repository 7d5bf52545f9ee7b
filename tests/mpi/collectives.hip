// SPDX-License-Identifier: MIT
// Collectives of a team against the data that they must give, around the sizes where packets end, by waves and
// workgroups, one after the other without barriers; wrong counts and roots.
#include <xio/team.h>

#include <type_traits>

#include "rig.hpp"

namespace {

constexpr size_t k_most = 5000;    // bytes of a block
constexpr size_t k_large = 70000;  // where the own block goes together with another
constexpr int k_rounds = 3;

__host__ __device__ unsigned char byte_of(int from, int to, size_t i, int round) {
  return static_cast<unsigned char>(from * 31 + to * 7 + static_cast<int>(i) * 3 + round * 101 + 1);
}

enum kind { alltoall, fcollect, broadcast };

template <kind K, bool Wave>
__device__ xio_status_t move(const xio_ctx_t& ctx, xio_team_t t, unsigned char* dst, const unsigned char* src,
                             size_t bytes, int root) {
  if constexpr (K == alltoall)
    return Wave ? xio_alltoall_wave(ctx, t, dst, src, bytes) : xio_alltoall_wg(ctx, t, dst, src, bytes);
  if constexpr (K == fcollect)
    return Wave ? xio_fcollect_wave(ctx, t, dst, src, bytes) : xio_fcollect_wg(ctx, t, dst, src, bytes);
  if constexpr (K == broadcast)
    return Wave ? xio_broadcast_wave(ctx, t, dst, src, bytes, root) : xio_broadcast_wg(ctx, t, dst, src, bytes, root);
}

// Two destinations take turns: while a member looks at one, another may be in the next round.
template <kind K, bool Wave>
__global__ void moves(xio_ctx_t ctx, xio_team_t t, unsigned char* dsts, unsigned char* src, size_t bytes, int* bad) {
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  const size_t lane = threadIdx.x, step = blockDim.x, all = static_cast<size_t>(n) * bytes;
  for (int round = 0; round < k_rounds; ++round) {
    const int root = round % n;
    unsigned char* dst =
        dsts + static_cast<size_t>(round % 2) * static_cast<size_t>(n) * (bytes > k_most ? bytes : k_most);
    for (size_t i = lane; i < all; i += step)
      src[i] = byte_of(me, K == alltoall ? static_cast<int>(i / bytes) : 0, i % bytes, round);
    __syncthreads();
    if (move<K, Wave>(ctx, t, dst, src, bytes, root) != XIO_OK) *bad = 1;
    for (size_t i = lane; i < (K == broadcast ? bytes : all); i += step) {
      const int from = K == broadcast ? root : static_cast<int>(i / bytes);
      const unsigned char wanted = byte_of(from, K == alltoall ? me : 0, i % bytes, round);
      if ((K != broadcast || me != root) && dst[i] != wanted) *bad = 2;
      if (K == broadcast && me == root && round < 2 && dst[i] != 0xee) *bad = 3;
    }
    __syncthreads();
  }
}

struct place {
  const rig::team& t;
  xio_team_t team;
  unsigned char *dst, *src;
  int wave;  // lanes of a wave
  // Of one wave, which may have fewer lanes.
  template <bool Wave>
  unsigned threads(int most) const {
    return Wave ? static_cast<unsigned>(std::min(most, wave)) : 96;
  }
};

template <kind K, bool Wave>
void all_sizes(const place& p, const char* name) {
  for (const size_t bytes :
       {size_t{1}, size_t{3}, size_t{8}, size_t{63}, size_t{2048}, size_t{4095}, size_t{4097}, k_most, k_large}) {
    if (bytes == k_large && p.t.n > 8) continue;
    const size_t room = 2 * static_cast<size_t>(p.t.n) * std::max(bytes, k_most);
    rig::team::write(p.dst, std::vector<unsigned char>(room, 0xee));
    const std::string what = rig::text("%s of %zu bytes by a %s", name, bytes, Wave ? "wave" : "workgroup");
    rig::expect_steps(p.t, what, moves<K, Wave>, 1, p.threads<Wave>(64), p.t.ctx, p.team, p.dst, p.src, bytes);
    const auto found = rig::team::read(p.dst, room);
    const size_t end = (K == broadcast ? 1 : static_cast<size_t>(p.t.n)) * bytes;
    rig::expect(end == room / 2 || found[end] == 0xee, "%s of %zu bytes wrote behind its end", name, bytes);
  }
}

// Whole numbers up to 15 in types that have no arithmetic here: the bits of half (5 of exponent, 10 of fraction) and
// bfloat16 (8 and 7), by the definition.
template <class T>
__host__ __device__ T number(int v) {
  if constexpr (std::is_same_v<T, xio_half_t> || std::is_same_v<T, xio_bfloat16_t>) {
    const int fraction = std::is_same_v<T, xio_half_t> ? 10 : 7, bias = std::is_same_v<T, xio_half_t> ? 15 : 127;
    int log2 = 0;
    while (v >> (log2 + 1) != 0) ++log2;
    const int bits = v == 0 ? 0 : (bias + log2) << fraction | (v - (1 << log2)) << (fraction - log2);
    return T{static_cast<uint16_t>(bits)};
  } else {
    return static_cast<T>(v);
  }
}

template <class T>
__device__ bool differ(T a, T b) {
  if constexpr (std::is_same_v<T, xio_half_t> || std::is_same_v<T, xio_bfloat16_t>)
    return a.bits != b.bits;
  else
    return a != b;
}

// Element i of block b of member `pe`. bfloat16 has whole numbers up to 256 alone, which 64 members must not pass.
template <class T>
__host__ __device__ int element_value(int pe, size_t b, size_t i) {
  const int j = static_cast<int>((i + 3 * b) % 5);
  return std::is_arithmetic_v<T> ? pe + 1 + j : (pe + j) % 5;
}
template <class T>
__host__ __device__ T element(int pe, size_t b, size_t i) {
  return number<T>(element_value<T>(pe, b, i));
}

// Sums of two-byte numbers, exact as all their partial sums are.
template <class T>
__device__ T combined_half(int n, size_t b, size_t i) {
  int sum = 0;
  for (int pe = 0; pe < n; ++pe) sum += element_value<T>(pe, b, i);
  return number<T>(sum);
}

template <xio_reduction Op, class T>
__device__ T combined_number(int n, size_t b, size_t i) {
  T sum = element<T>(0, b, i);
  for (int pe = 1; pe < n; ++pe) {
    const T v = element<T>(pe, b, i);
    if constexpr (Op == xio_reduction::sum) sum = static_cast<T>(sum + v);
    if constexpr (Op == xio_reduction::prod) sum = static_cast<T>(sum * v);
    if constexpr (Op == xio_reduction::min) sum = sum < v ? sum : v;
    if constexpr (Op == xio_reduction::max) sum = sum < v ? v : sum;
    if constexpr (Op == xio_reduction::bit_and) sum = static_cast<T>(sum & v);
    if constexpr (Op == xio_reduction::bit_or) sum = static_cast<T>(sum | v);
    if constexpr (Op == xio_reduction::bit_xor) sum = static_cast<T>(sum ^ v);
  }
  return sum;
}

template <xio_reduction Op, class T>
__device__ T combined(int n, size_t b, size_t i) {
  if constexpr (!std::is_arithmetic_v<T>)
    return combined_half<T>(n, b, i);
  else
    return combined_number<Op, T>(n, b, i);
}
// The way a reduce is called: into another place, in place, or with a block of the result for each member.
enum reduce_form { apart, in_place, scattered };

template <xio_reduction Op, class T, bool Wave>
__device__ xio_status_t reduce_by(const xio_ctx_t& ctx, xio_team_t t, T* dst, const T* src, size_t count,
                                  bool scatter) {
  if (scatter)
    return Wave ? xio_reduce_scatter_wave<Op, T>(ctx, t, dst, src, count)
                : xio_reduce_scatter_wg<Op, T>(ctx, t, dst, src, count);
  return Wave ? xio_reduce_wave<Op, T>(ctx, t, dst, src, count) : xio_reduce_wg<Op, T>(ctx, t, dst, src, count);
}

template <xio_reduction Op, class T, bool Wave>
__global__ void reduces(xio_ctx_t ctx, xio_team_t t, T* dst, T* src, size_t count, int* bad) {
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  for (const reduce_form form : {apart, in_place, scattered}) {
    const size_t blocks = form == scattered ? static_cast<size_t>(n) : 1;
    for (size_t i = threadIdx.x; i < count * blocks; i += blockDim.x) src[i] = element<T>(me, i / count, i % count);
    T* to = form == in_place ? src : dst;
    if (form != in_place)
      for (size_t i = threadIdx.x; i <= count; i += blockDim.x) to[i] = number<T>(9);
    // The others may store to my dst as soon as they have come.
    __syncthreads();
    if (xio_team_barrier_wg(ctx, t) != XIO_OK) *bad = 1;
    const T behind = to[count];
    if (reduce_by<Op, T, Wave>(ctx, t, to, src, count, form == scattered) != XIO_OK) *bad = 2 + form;
    const size_t mine = form == scattered ? static_cast<size_t>(me) : 0;
    for (size_t i = threadIdx.x; i < count; i += blockDim.x)
      if (differ(to[i], combined<Op, T>(n, mine, i))) *bad = 5 + form;
    if (differ(to[count], behind)) *bad = 8;
    __syncthreads();
  }
}

constexpr size_t k_most_reduced = 150000;  // bytes

template <xio_reduction Op, class T, bool Wave = false>
void reduce(const place& p, const char* name, size_t most = 20000) {
  // Packets, parts, and what goes in shares; the last not in whole words, and once from an odd place on.
  for (const size_t count : {size_t{1}, size_t{7}, 5000 / sizeof(T), most / sizeof(T) - 1}) {
    const size_t shift = count == 5000 / sizeof(T) ? 1 : 0;
    rig::expect_steps(p.t, rig::text("reduce %s of %zu", name, count), reduces<Op, T, Wave>, 1,
                      Wave ? p.threads<Wave>(40) : 64, p.t.ctx, p.team, reinterpret_cast<T*>(p.dst) + shift,
                      reinterpret_cast<T*>(p.src) + shift, count);
  }
}

template <class T>
void integer_reduces(const place& p, const char* name) {
  reduce<xio_reduction::sum, T>(p, name);
  reduce<xio_reduction::prod, T>(p, name);
  reduce<xio_reduction::min, T>(p, name);
  reduce<xio_reduction::bit_xor, T>(p, name);
}

// Member i has (i + me) % 4 * unit bytes for me, and the blocks lie in `dst` backwards, 7 bytes apart.
struct layout {
  size_t unit;
  int n;
  __device__ size_t bytes(int from, int to) const { return static_cast<size_t>((from * 2 + to) % 4) * unit; }
  __device__ size_t dst_offset(int from) const { return static_cast<size_t>(n - 1 - from) * (3 * unit + 7); }
  __device__ size_t src_offset(int to) const { return static_cast<size_t>(to) * (3 * unit + 7); }
};

template <bool Wave>
__global__ void varied(xio_ctx_t ctx, xio_team_t t, unsigned char* dst, unsigned char* src, size_t* numbers, layout l,
                       int* bad) {
  const int me = xio_team_my_pe(t), n = l.n;
  size_t *dst_offsets = numbers, *dst_bytes = numbers + n, *src_offsets = dst_bytes + n, *src_bytes = src_offsets + n;
  for (int m = static_cast<int>(threadIdx.x); m < n; m += static_cast<int>(blockDim.x)) {
    dst_offsets[m] = l.dst_offset(m), dst_bytes[m] = l.bytes(m, me);
    src_offsets[m] = l.src_offset(m), src_bytes[m] = l.bytes(me, m);
    for (size_t i = 0; i < src_bytes[m]; ++i) src[src_offsets[m] + i] = byte_of(me, m, i, 0);
  }
  __syncthreads();
  const xio_status_t s = Wave ? xio_alltoallv_wave(ctx, t, dst, dst_offsets, dst_bytes, src, src_offsets, src_bytes)
                              : xio_alltoallv_wg(ctx, t, dst, dst_offsets, dst_bytes, src, src_offsets, src_bytes);
  if (s != XIO_OK) *bad = 1;
  for (int m = static_cast<int>(threadIdx.x); m < n; m += static_cast<int>(blockDim.x)) {
    for (size_t i = 0; i < 3 * l.unit + 7; ++i) {
      const unsigned char wanted = i < dst_bytes[m] ? byte_of(m, me, i, 0) : 0xee;
      if (dst[dst_offsets[m] + i] != wanted) *bad = 2;
    }
  }
  // One PE's sizes are others than the others expect.
  __syncthreads();
  if (n > 1 && me == 0 && threadIdx.x == 0) src_bytes[1] += 1;
  __syncthreads();
  const xio_status_t wrong = xio_alltoallv_wg(ctx, t, dst, dst_offsets, dst_bytes, src, src_offsets, src_bytes);
  if (!Wave && wrong != (n > 1 ? XIO_ERR_ARG : XIO_OK)) *bad = 3;
}

template <bool Wave>
__global__ void collects(xio_ctx_t ctx, xio_team_t t, unsigned char* dst, unsigned char* src, size_t unit, int* bad) {
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  const size_t bytes = static_cast<size_t>(me % 3) * unit;
  for (size_t i = threadIdx.x; i < bytes; i += blockDim.x) src[i] = byte_of(me, 0, i, 5);
  __syncthreads();
  const xio_status_t s = Wave ? xio_collect_wave(ctx, t, dst, src, bytes) : xio_collect_wg(ctx, t, dst, src, bytes);
  if (s != XIO_OK) *bad = 4;
  size_t at = 0;
  for (int m = 0; m < n; at += static_cast<size_t>(m++ % 3) * unit)
    for (size_t i = threadIdx.x; i < static_cast<size_t>(m % 3) * unit; i += blockDim.x)
      if (dst[at + i] != byte_of(m, 0, i, 5)) *bad = 5;
  if (dst[at] != 0xee) *bad = 6;
}

template <bool Wave>
void all_varied(const place& p) {
  for (const size_t unit : {size_t{1}, size_t{40}, size_t{3000}}) {
    const rig::device_array<size_t> numbers(static_cast<size_t>(p.t.n) * 4);
    const std::vector<unsigned char> poison(static_cast<size_t>(p.t.n) * (3 * unit + 7), 0xee);
    const unsigned threads = p.threads<Wave>(64);
    const std::string what = rig::text("blocks of %zu bytes and more by a %s", unit, Wave ? "wave" : "workgroup");
    rig::team::write(p.dst, poison);
    rig::expect_steps(p.t, what, varied<Wave>, 1, threads, p.t.ctx, p.team, p.dst, p.src, numbers.data(),
                      layout{unit, p.t.n});
    rig::team::write(p.dst, poison);
    rig::expect_steps(p.t, what, collects<Wave>, 1, threads, p.t.ctx, p.team, p.dst, p.src, unit);
  }
}

// Workgroup b on channel b % 2 of one of two teams: reduces and alltoalls at the same time.
__global__ void together(xio_ctx_t ctx, xio_team_t one, xio_team_t two, unsigned char* dsts, unsigned char* srcs,
                         size_t room, int* bad) {
  const xio_team_t t = xio_team_channel(blockIdx.x < 2 ? one : two, blockIdx.x % 2);
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  if (n == 0) return;
  auto* dst = reinterpret_cast<int*>(dsts + blockIdx.x * room);
  auto* src = reinterpret_cast<int*>(srcs + blockIdx.x * room);
  const size_t block = 600, count = block * static_cast<size_t>(n);
  for (int round = 0; round < 8; ++round) {
    const int seed = static_cast<int>(blockIdx.x) * 100 + round;
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) src[i] = me * 1000 + seed + static_cast<int>(i);
    __syncthreads();
    if (xio_reduce_wg<xio_reduction::sum>(ctx, t, dst, src, count) != XIO_OK) *bad = 1;
    for (size_t i = threadIdx.x; i < count; i += blockDim.x)
      if (dst[i] != n * (n - 1) / 2 * 1000 + n * (seed + static_cast<int>(i))) *bad = 2;
    if (xio_team_sync_wg(ctx, t) != XIO_OK) *bad = 3;
    if (xio_alltoall_wg(ctx, t, dst, src, block * sizeof(int)) != XIO_OK) *bad = 4;
    for (size_t i = threadIdx.x; i < count; i += blockDim.x) {
      const int from = static_cast<int>(i / block), at = static_cast<int>(i % block) + me * static_cast<int>(block);
      if (dst[i] != from * 1000 + seed + at) *bad = 5;
    }
    if (xio_team_sync_wg(ctx, t) != XIO_OK) *bad = 6;
  }
}

void several_at_once(const place& p) {
  xio_team_t halves{};
  std::vector<int> pes;
  for (int pe = p.t.me % 2; pe < p.t.n; pe += 2) pes.push_back(pe);
  MUST(xio_team_create(p.t.world(), pes.data(), pes.size(), &halves));
  rig::expect_steps(p.t, "four collectives at once", together, 4, 64, p.t.ctx, p.team, halves, p.dst, p.src,
                    size_t{2400} * static_cast<size_t>(p.t.n));
  MUST(xio_team_destroy(p.t.world(), halves));
}

// PE 0 makes a mistake: an error for all, and a sentence at each.
struct unlike_call {
  const char *what, *at_pe_0, *at_others;
};
constexpr unlike_call k_unlike[] = {
    {"another count", "xio_alltoall of 16 bytes on team 1 (", "called xio_alltoall of 16 bytes;"},
    {"no such root", "there is no root -1; members are 0 to",
     "PE 0, its member 0, refused its own arguments: there is no root -1;"},
    {"another call", "called xio_alltoall of 8 bytes;", "PE 0, its member 0, called xio_fcollect of 8 bytes;"},
    {"a null pointer", "an argument is null; ", "PE 0, its member 0, refused its own arguments"},
    {"a sync", "xio_team_sync on team 1 (", "PE 0, its member 0, called xio_team_sync;"},
    {"a large count", "called xio_reduce of 100016 bytes, sum of 1-byte integers;",
     "PE 0, its member 0, called xio_reduce of 100000 bytes, sum of 1-byte integers;"},
    {"overlapping buffers", "dst and src overlap; give memory that lies apart", "PE 0, its member 0, refused"},
    {"blocks in place", "dst and src overlap; ", "xio_alltoall of 64 bytes on team 1 ("},
    {"memory of its own", "bytes from dst on, or those of src, are not in the symmetric heap", "refused its own"},
    {"unequal sizes", "this PE gave 5 bytes for member 1, whose dst_bytes has 4;", "refused its own arguments"},
    {"another type", "called xio_reduce of 8 bytes, sum of float;",
     "PE 0, its member 0, called xio_reduce of 8 bytes, sum of 4-byte integers;"},
    {"blocks of any size that overlap", "dst and src overlap; ", "PE 0, its member 0, refused its own arguments"},
};
constexpr int k_no_such_root = 1, k_tree = 16;  // from so many members on
constexpr int k_unlike_calls = sizeof k_unlike / sizeof k_unlike[0];

// Everybody has 4 bytes for everybody, but PE 0 gives member 1 `more`.
__device__ xio_status_t varied_call(const xio_ctx_t& ctx, xio_team_t t, unsigned char* dst, unsigned char* src,
                                    size_t* numbers, size_t more) {
  const int me = xio_team_my_pe(t), n = xio_team_n_pes(t);
  size_t *places = numbers, *in = numbers + n, *out = in + n;
  for (int m = static_cast<int>(threadIdx.x); m < n; m += static_cast<int>(blockDim.x))
    places[m] = static_cast<size_t>(m) * 4, in[m] = 4, out[m] = me == 0 && m == 1 ? 4 + more : 4;
  __syncthreads();
  return xio_alltoallv_wg(ctx, t, dst, places, in, src, places, out);
}

template <class T>
__device__ xio_status_t sum(const xio_ctx_t& ctx, xio_team_t t, void* dst, const void* src, size_t count) {
  return xio_reduce_wg<xio_reduction::sum>(ctx, t, static_cast<T*>(dst), static_cast<const T*>(src), count);
}

__global__ void unlike(xio_ctx_t ctx, xio_team_t t, unsigned char* dst, unsigned char* src, int step, int* status) {
  const int me = xio_team_my_pe(t);
  xio_status_t s = XIO_OK;
  if (step == 0) s = xio_alltoall_wg(ctx, t, dst, src, me == 0 ? 16 : 8);
  if (step == 1) s = xio_broadcast_wg(ctx, t, dst, src, 8, me == 0 ? -1 : 0);
  if (step == 2) s = me == 0 ? xio_fcollect_wg(ctx, t, dst, src, 8) : xio_alltoall_wg(ctx, t, dst, src, 8);
  if (step == 3) s = xio_fcollect_wg(ctx, t, me == 0 ? nullptr : dst, src, 8);
  if (step == 4) s = me == 0 ? xio_team_sync_wg(ctx, t) : xio_alltoall_wg(ctx, t, dst, src, 8);
  if (step == 5) s = xio_reduce_wg<xio_reduction::sum>(ctx, t, dst, src, me == 0 ? 100000 : 100016);
  if (step == 6) s = xio_reduce_wg<xio_reduction::sum>(ctx, t, dst + (me == 0 ? 8 : 0), dst, 100000);
  if (step == 7) s = xio_alltoall_wg(ctx, t, dst, me == 0 ? dst : src, 64);
  if (step == 8) s = xio_fcollect_wg(ctx, t, me == 0 ? reinterpret_cast<unsigned char*>(status) : dst, src, 8);
  if (step == 9) s = varied_call(ctx, t, dst, src, reinterpret_cast<size_t*>(src) + 32, 1);
  if (step == 10) s = me == 0 ? sum<int>(ctx, t, dst, src, 2) : sum<float>(ctx, t, dst, src, 2);
  if (step == 11) s = varied_call(ctx, t, dst, me == 0 ? dst + 2 : src, reinterpret_cast<size_t*>(src) + 32, 0);
  if (step == k_unlike_calls) s = xio_alltoall_wg(ctx, t, dst, src, 8);
  if (threadIdx.x == 0) *status = s;
}

void unlike_calls(const place& p) {
  for (int step = 0; step <= k_unlike_calls; ++step) {
    const bool last = step == k_unlike_calls;
    const char* what = last ? "the call after those" : k_unlike[step].what;
    const rig::device_array<int> status(8);
    p.t.barrier();
    rig::expect_status(rig::result_of(unlike, 1, 64, p.t.ctx, p.team, p.dst, p.src, step), last ? XIO_OK : XIO_ERR_ARG,
                       what);
    if (last) return;
    const xio_error_info_t info = rig::error_of(p.t);
    // A mistake below a root that had sent its data down a tree comes to all by the next call.
    if (step == k_no_such_root && p.t.n >= k_tree && (p.t.ctx.flags & xio::dev::ctx_all_mapped) == 0) {
      rig::expect_status(rig::result_of(unlike, 1, 64, p.t.ctx, p.team, p.dst, p.src, k_unlike_calls), XIO_ERR_ARG,
                         "the call after a broadcast");
    }
    const char* wanted = p.t.me == 0 ? k_unlike[step].at_pe_0 : k_unlike[step].at_others;
    // In rounds and trees a member may hear of the mistake from one that has heard of it.
    const bool hearsay = (p.t.n > 8 || (step == k_no_such_root && p.t.n >= k_tree)) &&
                         std::strstr(info.sentence, "has heard of a member in another call") != nullptr;
    rig::expect(info.status == XIO_ERR_ARG && (std::strstr(info.sentence, wanted) != nullptr || hearsay),
                "after %s PE %d reads: \"%s\"", what, p.t.me, info.sentence);
  }
}

int lanes() {
  hipDeviceProp_t properties;
  MUST(hipGetDeviceProperties(&properties, 0));
  return properties.warpSize;
}

}  // namespace

int main() {
  // Small, so that reduces of 20000 bytes go in shares.
  setenv("XIO_TEAM_AREA", "16k", 0);
  // As on GPUs, on the host platform, too.
  setenv("XIO_TEAM_PACKETS", "4096", 0);
  const rig::team t;
  xio_team_t team{};
  MUST(xio_team_world(t.world(), &team));
  const size_t room = static_cast<size_t>(t.n) * k_most_reduced + 64;
  const place p{t, team, t.symmetric<unsigned char>(room), t.symmetric<unsigned char>(room), lanes()};
  all_sizes<alltoall, false>(p, "alltoall");
  all_sizes<alltoall, true>(p, "alltoall");
  all_sizes<fcollect, false>(p, "fcollect");
  all_sizes<fcollect, true>(p, "fcollect");
  all_sizes<broadcast, false>(p, "broadcast");
  all_sizes<broadcast, true>(p, "broadcast");
  integer_reduces<int8_t>(p, "int8");
  integer_reduces<uint16_t>(p, "uint16");
  integer_reduces<int32_t>(p, "int32");
  integer_reduces<uint64_t>(p, "uint64");
  reduce<xio_reduction::bit_and, int64_t>(p, "int64");
  reduce<xio_reduction::bit_or, uint32_t>(p, "uint32");
  reduce<xio_reduction::sum, float>(p, "float");
  reduce<xio_reduction::max, double>(p, "double");
  reduce<xio_reduction::sum, int32_t>(p, "int32, large", k_most_reduced);
  reduce<xio_reduction::sum, int16_t, true>(p, "int16 by a wave", k_most_reduced);
  reduce<xio_reduction::sum, xio_half_t>(p, "half");
  reduce<xio_reduction::sum, xio_bfloat16_t>(p, "bfloat16");
  all_varied<false>(p);
  all_varied<true>(p);
  several_at_once(p);
  if (t.n > 1) unlike_calls(p);
  MUST(xio_team_destroy(t.world(), team));
  return rig::verdict("collectives", t);
}
