// SPDX-License-Identifier: MIT
// Copies and single values of every type of rocSHMEM, blocking or not, by thread, wave and workgroup, with guards.
#include "rig.hpp"

namespace {

constexpr int k_count = 37, k_areas = 8, k_stride = k_count + 3;

// Area i of dst is for the i-th call; source holds 1, 2, 3, ... at each PE plus its number.
#define TYPE(NAME, T)                                                                                              \
  __global__ void copies_##NAME(T* dst, T* source, T* local, int to) {                                             \
    rocshmem_##NAME##_put_wg(dst, source, k_count, to);                                                            \
    rocshmem_##NAME##_put_nbi_wg(dst + k_stride, source, k_count, to);                                             \
    if (threadIdx.x / warpSize == 0) {                                                                             \
      rocshmem_##NAME##_put_wave(dst + 2 * k_stride, source, k_count, to);                                         \
      rocshmem_##NAME##_get_wave(local + 2 * k_stride, source, k_count, to);                                       \
      rocshmem_##NAME##_get_nbi_wave(local + 3 * k_stride, source, k_count, to);                                   \
    }                                                                                                              \
    if (threadIdx.x == 0) {                                                                                        \
      rocshmem_##NAME##_put(dst + 3 * k_stride, source, k_count, to);                                              \
      rocshmem_ctx_##NAME##_put_nbi(ROCSHMEM_CTX_DEFAULT, dst + 4 * k_stride, source, k_count, to);                \
      for (int i = 0; i < k_count; ++i) rocshmem_##NAME##_p(dst + 5 * k_stride + i, source[i], to);                \
      rocshmem_##NAME##_get(local, source, k_count, to);                                                           \
      rocshmem_##NAME##_get_nbi(local + k_stride, source, k_count, to);                                            \
      for (int i = 0; i < k_count; ++i) local[4 * k_stride + i] = rocshmem_##NAME##_g(source + i, to);             \
      rocshmem_putmem(dst + 6 * k_stride, source, k_count * sizeof(T), to);                                        \
      rocshmem_ctx_getmem(ROCSHMEM_CTX_DEFAULT, local + 5 * k_stride, source, k_count * sizeof(T), to);            \
    }                                                                                                              \
    rocshmem_##NAME##_get_wg(local + 6 * k_stride, source, k_count, to);                                           \
    rocshmem_ctx_##NAME##_get_nbi_wg(ROCSHMEM_CTX_DEFAULT, local + 7 * k_stride, source, k_count, to);             \
    if (threadIdx.x == 0) rocshmem_quiet();                                                                        \
  }                                                                                                                \
  void type_##NAME() {                                                                                             \
    const int me = rocshmem_my_pe(), n = rocshmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;          \
    T* dst = rig::symmetric<T>(k_areas * k_stride, 0x55);                                                          \
    T* source = rig::symmetric<T>(k_count, 0);                                                                     \
    T* local = rig::symmetric<T>(k_areas * k_stride, 0x55);                                                        \
    const T guard = rig::read(dst, 1)[0];                                                                          \
    std::vector<T> mine(k_count);                                                                                  \
    for (int i = 0; i < k_count; ++i) mine[i] = static_cast<T>(i + 1 + me);                                        \
    rig::must(hipMemcpy(source, mine.data(), k_count * sizeof(T), hipMemcpyHostToDevice));                         \
    rocshmem_barrier_all();                                                                                        \
    RUN(copies_##NAME, 1, 96, dst, source, local, right);                                                          \
    rocshmem_barrier_all();                                                                                        \
    const std::vector<T> came = rig::read(dst, k_areas * k_stride), got = rig::read(local, k_areas * k_stride);    \
    for (int i = 0; i < k_areas * k_stride; ++i) {                                                                 \
      const int at = i % k_stride;                                                                                 \
      const T put = at < k_count && i < 7 * k_stride ? static_cast<T>(at + 1 + left) : guard;                      \
      const T wanted = at < k_count ? static_cast<T>(at + 1 + right) : guard;                                      \
      rig::expect(came[i] == put, #NAME " put", static_cast<long long>(came[i]), static_cast<long long>(put));     \
      rig::expect(got[i] == wanted, #NAME " get", static_cast<long long>(got[i]), static_cast<long long>(wanted)); \
    }                                                                                                              \
    rocshmem_free(local), rocshmem_free(source), rocshmem_free(dst);                                               \
  }

// On GPUs one type of each size: the compiler takes seconds for each.
#define TYPES(X) X(schar, signed char) X(ushort, unsigned short) X(float, float) X(longlong, long long)
#if defined(XIO_ON_HOST)
// clang-format off
#define MORE_TYPES(X) \
  X(double, double) X(char, char) X(short, short) X(int, int) X(long, long) X(uchar, unsigned char) \
  X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(size, size_t) X(ptrdiff, ptrdiff_t) \
  X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t) \
  X(uint8, uint8_t) X(uint16, uint16_t) X(uint32, uint32_t) X(uint64, uint64_t)
// clang-format on
#else
#define MORE_TYPES(X)
#endif
TYPES(TYPE)
MORE_TYPES(TYPE)

}  // namespace

int main() {
  rocshmem_init();
#define CARRY_OUT(NAME, T) type_##NAME();
  TYPES(CARRY_OUT)
  MORE_TYPES(CARRY_OUT)
  return rig::verdict("types");
}
