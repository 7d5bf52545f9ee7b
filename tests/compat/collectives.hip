// SPDX-License-Identifier: MIT
// Collectives of a team of all PEs and of teams of even and odd ones: every kind, by wave and workgroup, under the
// names of now and those of before 3.0, small and large, with guards.
#include "rig.hpp"

namespace {

enum scope { wave, workgroup, workgroup_before };

constexpr int k_guard = 3;

// Element i of the source at PE `pe` of the world.
template <class T>
__host__ __device__ T given(int pe, int i) {
  return static_cast<T>((pe + 1) * 3 + i % 11);
}

#define TYPE(NAME, T)                                                                                               \
  __global__ void moves_##NAME(scope s, rocshmem_team_t team, T* all, T* gathered, T* cast, T* from, int n,         \
                               int root) {                                                                          \
    __shared__ rocshmem_ctx_t ctx;                                                                                  \
    rocshmem_wg_ctx_create(0, &ctx);                                                                                \
    if (s == workgroup) {                                                                                           \
      rocshmem_ctx_##NAME##_alltoall_wg(ctx, team, all, from, n);                                                   \
      rocshmem_ctx_##NAME##_fcollect_wg(ctx, team, gathered, from, n);                                              \
      rocshmem_ctx_##NAME##_broadcast_wg(ctx, team, cast, from, n, root);                                           \
    }                                                                                                               \
    if (s == workgroup_before) {                                                                                    \
      rocshmem_ctx_##NAME##_wg_alltoall(ctx, team, all, from, n);                                                   \
      rocshmem_ctx_##NAME##_wg_fcollect(ctx, team, gathered, from, n);                                              \
      rocshmem_ctx_##NAME##_wg_broadcast(ctx, team, cast, from, n, root);                                           \
    }                                                                                                               \
    if (s == wave && threadIdx.x / warpSize == 0) {                                                                 \
      rocshmem_ctx_##NAME##_alltoall_wave(ctx, team, all, from, n);                                                 \
      rocshmem_ctx_##NAME##_fcollect_wave(ctx, team, gathered, from, n);                                            \
      rocshmem_ctx_##NAME##_broadcast_wave(ctx, team, cast, from, n, root);                                         \
    }                                                                                                               \
    __syncthreads();                                                                                                \
    rocshmem_wg_ctx_destroy(&ctx);                                                                                  \
  }                                                                                                                 \
  __global__ void sums_##NAME(scope s, rocshmem_team_t team, T* sum, T* least, T* most, T* from, int n, int* bad) { \
    int status = 0;                                                                                                 \
    if (s == workgroup) {                                                                                           \
      status |= rocshmem_ctx_##NAME##_sum_reduce_wg(ROCSHMEM_CTX_DEFAULT, team, sum, from, n);                      \
      status |= rocshmem_ctx_##NAME##_min_reduce_wg(ROCSHMEM_CTX_DEFAULT, team, least, from, n);                    \
      status |= rocshmem_ctx_##NAME##_max_reduce_wg(ROCSHMEM_CTX_DEFAULT, team, most, from, n);                     \
    }                                                                                                               \
    if (s == workgroup_before) {                                                                                    \
      status |= rocshmem_ctx_##NAME##_sum_wg_reduce(ROCSHMEM_CTX_DEFAULT, team, sum, from, n);                      \
      status |= rocshmem_ctx_##NAME##_min_wg_reduce(ROCSHMEM_CTX_DEFAULT, team, least, from, n);                    \
      status |= rocshmem_ctx_##NAME##_max_wg_reduce(ROCSHMEM_CTX_DEFAULT, team, most, from, n);                     \
    }                                                                                                               \
    if (s == wave && threadIdx.x / warpSize == 0) {                                                                 \
      status |= rocshmem_ctx_##NAME##_sum_reduce_wave(ROCSHMEM_CTX_DEFAULT, team, sum, from, n);                    \
      status |= rocshmem_ctx_##NAME##_min_reduce_wave(ROCSHMEM_CTX_DEFAULT, team, least, from, n);                  \
      status |= rocshmem_ctx_##NAME##_max_reduce_wave(ROCSHMEM_CTX_DEFAULT, team, most, from, n);                   \
    }                                                                                                               \
    if (status != ROCSHMEM_SUCCESS) *bad = 1;                                                                       \
  }                                                                                                                 \
  void type_##NAME(rocshmem_team_t team, const std::vector<int>& pes, int mine) {                                   \
    const int n_max = 1200, me = rocshmem_my_pe(), members = static_cast<int>(pes.size()), root = members - 1;      \
    buffers<T> b(members, n_max, me);                                                                               \
    for (const scope s : {wave, workgroup, workgroup_before})                                                       \
      for (const int n : {1, 37, n_max}) {                                                                          \
        b.poison();                                                                                                 \
        if (mine >= 0) {                                                                                            \
          RUN(moves_##NAME, 1, 96, s, team, b.all, b.gathered, b.cast, b.from, n, root);                            \
          RUN(sums_##NAME, 1, 96, s, team, b.sum, b.least, b.most, b.from, n, b.bad);                               \
        }                                                                                                           \
        rocshmem_barrier_all();                                                                                     \
        b.check(pes, mine, n, root, #NAME);                                                                         \
      }                                                                                                             \
  }

template <class T>
struct buffers {
  T *all, *gathered, *cast, *from, *sum, *least, *most;
  int* bad;
  size_t room, one;
  T guard;
  buffers(int members, int n, int me)
      : room(static_cast<size_t>(members) * static_cast<size_t>(n) + k_guard), one(static_cast<size_t>(n) + k_guard) {
    // Splits have other sizes at other PEs, and symmetric memory has not.
    room = static_cast<size_t>(rocshmem_n_pes()) * static_cast<size_t>(n) + k_guard;
    all = rig::symmetric<T>(room, 0x55);
    gathered = rig::symmetric<T>(room, 0x55);
    cast = rig::symmetric<T>(one, 0x55);
    sum = rig::symmetric<T>(one, 0x55);
    least = rig::symmetric<T>(one, 0x55);
    most = rig::symmetric<T>(one, 0x55);
    from = rig::symmetric<T>(room, 0);
    bad = rig::symmetric<int>(1, 0);
    guard = rig::read(cast, 1)[0];
    std::vector<T> mine(room);
    for (size_t i = 0; i < room; ++i) mine[i] = given<T>(me, static_cast<int>(i));
    rig::must(hipMemcpy(from, mine.data(), room * sizeof(T), hipMemcpyHostToDevice));
    rocshmem_barrier_all();
  }
  ~buffers() {
    for (T* block : {from, most, least, sum, cast, gathered, all}) rocshmem_free(block);
    rocshmem_free(bad);
  }
  void poison() {
    for (T* block : {all, gathered}) rig::must(hipMemset(block, 0x55, room * sizeof(T)));
    for (T* block : {cast, sum, least, most}) rig::must(hipMemset(block, 0x55, one * sizeof(T)));
    rig::must(hipDeviceSynchronize());
    rocshmem_barrier_all();
  }
  void same(const T* block, size_t count, const std::vector<T>& wanted, const char* what) {
    const std::vector<T> got = rig::read(block, count);
    for (size_t i = 0; i < count; ++i) {
      const T right = i < wanted.size() ? wanted[i] : guard;
      rig::expect(got[i] == right, what, static_cast<long long>(got[i]), static_cast<long long>(right));
    }
  }
  void check(const std::vector<int>& pes, int mine, int n, int root, const char* type) {
    std::vector<T> a, g, c, total, low, high;
    for (size_t m = 0; mine >= 0 && m < pes.size(); ++m)
      for (int i = 0; i < n; ++i) {
        a.push_back(given<T>(pes[m], mine * n + i));
        g.push_back(given<T>(pes[m], i));
      }
    for (int i = 0; mine >= 0 && i < n; ++i) {
      if (mine != root) c.push_back(given<T>(pes[static_cast<size_t>(root)], i));
      T s = 0, l = given<T>(pes[0], i), h = l;
      for (const int pe : pes) {
        const T v = given<T>(pe, i);
        s = static_cast<T>(s + v);
        l = v < l ? v : l;
        h = h < v ? v : h;
      }
      total.push_back(s);
      low.push_back(l);
      high.push_back(h);
    }
    const std::string name = std::string(type) + ", " + std::to_string(n) + " elements, ";
    same(all, room, a, (name + "alltoall").c_str());
    same(gathered, room, g, (name + "fcollect").c_str());
    same(cast, one, c, (name + "broadcast").c_str());
    same(sum, one, total, (name + "sum").c_str());
    same(least, one, low, (name + "min").c_str());
    same(most, one, high, (name + "max").c_str());
    rig::expect(rig::read(bad, 1)[0] == 0, "status of a reduce", rig::read(bad, 1)[0], 0);
  }
};

TYPE(int, int)
TYPE(double, double)
#if defined(XIO_ON_HOST)
TYPE(schar, signed char)
TYPE(short, short)
TYPE(ulonglong, unsigned long long)
TYPE(float, float)
#endif

// prod, and, or, xor of every member's word; bytes; a team for each of two workgroups at the same time; and a count
// that is refused.
__global__ void others(rocshmem_team_t team, unsigned* out, unsigned* in) {
  rocshmem_uint_prod_reduce_wg(team, out, in, 1);
  rocshmem_uint_and_reduce_wg(team, out + 1, in, 1);
  rocshmem_uint_or_reduce_wg(team, out + 2, in, 1);
  rocshmem_uint_xor_reduce_wg(team, out + 3, in, 1);
  rocshmem_ctx_alltoallmem_wg(ROCSHMEM_CTX_DEFAULT, team, out + 4, in, sizeof *in);
  rocshmem_ctx_broadcastmem_wg(ROCSHMEM_CTX_DEFAULT, team, out + 3 + rocshmem_n_pes(), in + 1, sizeof *in, 0);
}
__global__ void at_once(rocshmem_team_t a, rocshmem_team_t b, int* sums, int* in) {
  const rocshmem_team_t team = blockIdx.x == 0 ? a : b;
  for (int i = 0; i < 20; ++i) rocshmem_int_sum_reduce_wg(team, sums + blockIdx.x, in, 1);
}

void mixed(int n, int me, rocshmem_team_t whole) {
  auto* out = rig::symmetric<unsigned>(static_cast<size_t>(n) + 8, 0);
  auto* in = rig::symmetric<unsigned>(static_cast<size_t>(n) + 2, 0);
  auto* sums = rig::symmetric<int>(2, 0);
  std::vector<unsigned> mine(static_cast<size_t>(n) + 2);
  for (int i = 0; i < n + 2; ++i) mine[static_cast<size_t>(i)] = static_cast<unsigned>(0xf0 + 16 * i + me + 1);
  rig::must(hipMemcpy(in, mine.data(), mine.size() * sizeof mine[0], hipMemcpyHostToDevice));
  rocshmem_barrier_all();
  RUN(others, 1, 64, ROCSHMEM_TEAM_WORLD, out, in);
  unsigned wanted[4] = {1, ~0u, 0, 0};
  for (int pe = 0; pe < n; ++pe) {
    const unsigned v = 0xf1 + static_cast<unsigned>(pe);
    wanted[0] *= v, wanted[1] &= v, wanted[2] |= v, wanted[3] ^= v;
  }
  rocshmem_barrier_all();
  const auto got = rig::read(out, static_cast<size_t>(n) + 8);
  for (int i = 0; i < 4; ++i)
    rig::expect(got[static_cast<size_t>(i)] == wanted[i], "prod, and, or, xor", got[static_cast<size_t>(i)], wanted[i]);
  for (int pe = 0; pe < n - 1; ++pe)
    rig::expect(got[static_cast<size_t>(4 + pe)] == 0xf1u + 16 * static_cast<unsigned>(me) + static_cast<unsigned>(pe),
                "bytes by alltoall", got[static_cast<size_t>(4 + pe)], 0xf1 + 16 * me + pe);
  RUN(at_once, 2, 64, ROCSHMEM_TEAM_WORLD, whole, sums, reinterpret_cast<int*>(in));
  int total = 0;
  for (int pe = 0; pe < n; ++pe) total += 0xf1 + pe;
  for (int i = 0; i < 2; ++i)
    rig::expect(rig::read(sums, 2)[static_cast<size_t>(i)] == total, "two teams at once",
                rig::read(sums, 2)[static_cast<size_t>(i)], total);
  rocshmem_barrier_all();
}

__global__ void refused(int* to, int* from, int count, int* status) {
  const int s = rocshmem_ctx_int_sum_reduce_wg(ROCSHMEM_CTX_DEFAULT, ROCSHMEM_TEAM_WORLD, to, from, count);
  rocshmem_ctx_int_broadcast_wg(ROCSHMEM_CTX_DEFAULT, ROCSHMEM_TEAM_WORLD, to, from, count, 0);
  if (threadIdx.x == 0) *status = s;
}

}  // namespace

int main() {
  rocshmem_init();
  const int n = rocshmem_n_pes(), me = rocshmem_my_pe();
  std::vector<int> all, half;
  for (int i = 0; i < n; ++i) {
    all.push_back(i);
    if (i % 2 == me % 2) half.push_back(i);
  }
  rocshmem_team_t whole, even, odd;
  rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 0, 1, n, nullptr, 0, &whole);
  rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, nullptr, 0, &even);
  rocshmem_team_split_strided(ROCSHMEM_TEAM_WORLD, 1, 2, n / 2, nullptr, 0, &odd);
  type_int(ROCSHMEM_TEAM_WORLD, all, me);
  type_int(me % 2 == 0 ? even : odd, half, me / 2);
  type_double(whole, all, me);
#if defined(XIO_ON_HOST)
  type_schar(whole, all, me);
  type_short(whole, all, me);
  type_ulonglong(whole, all, me);
  type_float(me % 2 == 0 ? even : odd, half, me / 2);
#endif
  mixed(n, me, whole);
  rocshmem_barrier_all();
  rig::expect(rocshmem_status() == XIO_OK, "the status before the refusal", rocshmem_status(), XIO_OK);
  auto* word = rig::symmetric<int>(2, 0x55);
  RUN(refused, 1, 64, word, word, -1, word + 1);
  rig::expect(rig::read(word, 2)[1] == ROCSHMEM_ERROR, "a negative count", rig::read(word, 2)[1], ROCSHMEM_ERROR);
  rig::expect(rig::read(word, 2)[0] == 0x55555555, "nothing was written", rig::read(word, 2)[0], 0x55555555);
  rocshmem_finalize();
  std::printf("collectives: PE %d of %d: %d checks, %d failed\n", me, n, rig::checks, rig::failures);
  return rig::failures == 0 ? 0 : 1;
}
