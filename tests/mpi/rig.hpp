// SPDX-License-Identifier: MIT
// What the programs of this folder share: a world, a ctx on the route under test, kernels that end, and a count of
// what went wrong. Every PE runs the same steps; nothing returns early on a failure, so nobody is left at a barrier.
#pragma once
#include <unistd.h>
#include <xio/hip.h>
#include <xio/xio.h>
#include <xio/xio_device.hpp>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rig {

// Set-up that fails ends the program; a failed check of the test itself is only counted.
[[noreturn]] inline void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "%s: %s\n", what, why);
  std::exit(2);
}
inline void must(xio_status_t status, const char* what) {
  if (status != XIO_OK) give_up(what, xio_last_error());
}
inline void must(hipError_t error, const char* what) {
  if (error != hipSuccess) give_up(what, hipGetErrorString(error));
}
#define MUST(call) ::rig::must((call), #call)

// Memory of the device that only this PE sees.
template <class T>
class device_array {
 public:
  explicit device_array(size_t count) : count_(count) {
    MUST(hipMalloc(&data_, (count == 0 ? 1 : count) * sizeof(T)));
    MUST(hipMemset(data_, 0, (count == 0 ? 1 : count) * sizeof(T)));
  }
  explicit device_array(const std::vector<T>& from) : device_array(from.size()) { set(from); }
  device_array& operator=(device_array&&) = delete;
  ~device_array() { (void)hipFree(data_); }

  T* data() const { return data_; }
  void set(const std::vector<T>& from) {
    MUST(hipMemcpy(data_, from.data(), from.size() * sizeof(T), hipMemcpyHostToDevice));
  }
  std::vector<T> get() const {
    std::vector<T> out(count_);
    MUST(hipMemcpy(out.data(), data_, count_ * sizeof(T), hipMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

struct options {
  size_t heap_bytes = 0;
  uint32_t timeout_ms = 0;
  size_t bulk_bytes = 0;
  uint32_t pool = 0, ring_depth = 0;
};

class team {
 public:
  explicit team(const options& o = {}) {
    xio_init_attr_t init = XIO_INIT_ATTR_INIT;
    init.heap_bytes = o.heap_bytes;
    init.timeout_ms = o.timeout_ms;
    MUST(xio_init(&init, &world_));
    me = xio_my_pe(world_);
    n = xio_n_pes(world_);
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    attr.bulk_bytes = o.bulk_bytes;
    attr.pool = o.pool;
    attr.ring_depth = o.ring_depth;
    MUST(xio_ctx_create(world_, &attr, &ctx));
    route = xio_route_name(world_, ctx, 8, right);
  }
  team& operator=(team&&) = delete;
  ~team() {
    MUST(xio_ctx_destroy(world_, ctx));
    MUST(xio_finalize(world_));
  }

  xio_world_t* world() const { return world_; }
  void barrier() const { MUST(xio_host_barrier(world_)); }

  // Symmetric, zeroed, and never given back before the end.
  template <class T>
  T* symmetric(size_t count) const {
    void* p = nullptr;
    MUST(xio_calloc(world_, count, sizeof(T), &p));
    return static_cast<T*>(p);
  }
  // The same, not zeroed.
  template <class T>
  T* symmetric_raw(size_t count) const {
    void* p = nullptr;
    MUST(xio_malloc(world_, count * sizeof(T), &p));
    return static_cast<T*>(p);
  }
  template <class T>
  static void write(T* to, const std::vector<T>& from) {
    MUST(hipMemcpy(to, from.data(), from.size() * sizeof(T), hipMemcpyHostToDevice));
    // From pageable memory the copy may still be on its way, and a peer is about to write to the same place.
    MUST(hipDeviceSynchronize());
  }
  template <class T>
  static std::vector<T> read(const T* from, size_t count) {
    std::vector<T> out(count);
    MUST(hipMemcpy(out.data(), from, count * sizeof(T), hipMemcpyDeviceToHost));
    return out;
  }

  int me = -1, n = 0, right = -1, left = -1;  // the last two are neighbours in a ring of all
  xio_ctx_t ctx{};
  std::string route;

 private:
  xio_world_t* world_ = nullptr;
};

// XIO_TEST_WAIT_MS=N: kernels wait so long at most, for runs in which an op is lost. XIO_TIMEOUT_MS stays for xio_init
// and the other calls of the host, which take longer than such a wait where the processors have other work.
inline void limit_waits(const team& t) {
  const char* asked = std::getenv("XIO_TEST_WAIT_MS");
  if (asked == nullptr) return;
  auto* const world = static_cast<xio::dev::world_view*>(t.ctx.world);
  uint64_t ticks = 0;
  MUST(hipMemcpy(&ticks, &world->ticks_per_ms, sizeof ticks, hipMemcpyDeviceToHost));
  ticks *= std::strtoull(asked, nullptr, 10);
  MUST(hipMemcpy(&world->timeout_ticks, &ticks, sizeof ticks, hipMemcpyHostToDevice));
  MUST(hipDeviceSynchronize());
}

// More PEs than GPUs: a PE that waits for another one then waits for time slices of milliseconds, so that tests that
// are many such waits do fewer.
inline bool shared_gpus(const team& t) {
#if defined(XIO_ON_HOST)
  (void)t;
  return false;
#else
  int devices = 0;
  MUST(hipGetDeviceCount(&devices));
  return t.n > devices;
#endif
}

// Runs a kernel to its end.
#define RUN(kernel, blocks, threads, ...)                                             \
  do {                                                                                \
    hipLaunchKernelGGL(kernel, dim3(blocks), dim3(threads), 0, nullptr, __VA_ARGS__); \
    MUST(hipDeviceSynchronize());                                                     \
  } while (0)

// Gives the value that a kernel stored to the int of its last argument, or 0.
template <class... Parameters, class... Arguments>
int result_of(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, const Arguments&... arguments) {
  const device_array<int> result(1);
  RUN(kernel, blocks, threads, arguments..., result.data());
  return result.get()[0];
}

// XIO_TEST_SHORT=1: as few turns as show an order that is missing, for runs of many programs that differ a little
// (tests/amdgpu/sites).
inline bool is_short() {
  const char* asked = std::getenv("XIO_TEST_SHORT");
  return asked != nullptr && *asked == '1';
}

// --- Judging -----------------------------------------------------------------------------------------

inline int failures = 0;
inline int checks = 0;

__attribute__((format(printf, 2, 3))) inline bool expect(bool good, const char* format, ...) {
  ++checks;
  if (good) return true;
  if (++failures <= 20) {
    va_list arguments;
    va_start(arguments, format);
    std::fputs("FAIL ", stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
  }
  return false;
}

__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  char out[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(out, sizeof out, format, arguments);
  va_end(arguments);
  return out;
}

// Runs a kernel when all PEs have come, and goes on when all are done. The int of its last argument gets the number of
// a step that fails.
template <class... Parameters, class... Arguments>
void expect_steps(const team& t, const std::string& what, void (*kernel)(Parameters...), unsigned blocks,
                  unsigned threads, const Arguments&... arguments) {
  t.barrier();
  const int bad = result_of(kernel, blocks, threads, arguments...);
  t.barrier();
  expect(bad == 0, "%s: step %d failed", what.c_str(), bad);
}

// Statuses of kernels come as numbers.
inline void expect_status(int got, xio_status_t wanted, const char* what) {
  const char* const name = xio_status_name(static_cast<xio_status_t>(got));
  expect(got == wanted, "%s: %s, expected %s", what, name, xio_status_name(wanted));
}

__global__ inline void just_quiet(xio_ctx_t ctx, int* status) { *status = xio_quiet(ctx); }
inline void expect_quiet(const xio_ctx_t& ctx, xio_status_t wanted, const char* what) {
  expect_status(result_of(just_quiet, 1, 1, ctx), wanted, what);
}

// Compares whole memories, so that a byte written beside its place is seen as well as one that did not come.
inline void expect_same(const std::vector<unsigned char>& got, const std::vector<unsigned char>& wanted,
                        const char* what) {
  if (expect(got.size() == wanted.size(), "%s: %zu bytes, expected %zu", what, got.size(), wanted.size()) &&
      std::memcmp(got.data(), wanted.data(), got.size()) == 0) {
    return;
  }
  size_t first = 0, bad = 0;
  for (size_t i = 0; i < got.size() && i < wanted.size(); ++i)
    if (got[i] != wanted[i] && bad++ == 0) first = i;
  expect(false, "%s: %zu bytes differ, the first at %zu: %02x, expected %02x", what, bad, first, got[first],
         wanted[first]);
}

// The end of a program: says what was done, and checks that the forced engine is the one that did it.
inline int verdict(const char* program, const team& t, bool check_engines = true) {
  const xio_route_t engines[] = {XIO_ROUTE_RDMA, XIO_ROUTE_SDMA};
  const char* names[] = {"rdma", "sdma"};
  const char* forced = std::getenv("XIO_ROUTE");
  check_engines = check_engines && forced != nullptr && t.route == forced;
  for (int i = 0; check_engines && i < 2; ++i) {
    xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
    MUST(xio_ctx_stats(t.world(), t.ctx, engines[i], &stats));
    expect((stats.ops != 0) == (t.route == names[i]), "%llu ops went by %s, route is %s",
           static_cast<unsigned long long>(stats.ops), names[i], t.route.c_str());
  }
  std::printf("%s: PE %d of %d, route %s: %d checks, %d failed\n", program, t.me, t.n, t.route.c_str(), checks,
              failures);
  return failures == 0 ? 0 : 1;
}

// The end of a program without a team.
inline int verdict(const char* program) {
  std::printf("%s: %d checks, %d failed\n", program, checks, failures);
  return failures == 0 ? 0 : 1;
}

// The last failure of a ctx, for the host.
inline xio_error_info_t error_of(xio_world_t* world, const xio_ctx_t& ctx) {
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  MUST(xio_ctx_error(world, ctx, &info));
  return info;
}
inline xio_error_info_t error_of(const team& t) { return error_of(t.world(), t.ctx); }

using clock_type = std::chrono::steady_clock;
inline double ms_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock_type::now() - begin).count();
}
inline bool took_less(clock_type::time_point since, double ms, const std::string& what) {
  const double took = ms_since(since);
  return expect(took < ms, "%s took %.0f ms", what.c_str(), took);
}

// For printf.
template <class T>
unsigned long long ull(T value) {
  return static_cast<unsigned long long>(value);
}

// --- Data --------------------------------------------------------------------------------------------

// Byte i of PE pe's source. Neighbours differ, PEs differ, and no value repeats with a power of two.
XIO_HOST_DEVICE unsigned char pattern(int pe, uint64_t i) {
  uint32_t x = static_cast<uint32_t>(i) * 2654435761u ^ (static_cast<uint32_t>(pe) + 1) * 2246822519u;
  x ^= x >> 15;
  return static_cast<unsigned char>((x * 2246822519u) >> 24);
}
constexpr unsigned char k_poison = 0xA5;

inline std::vector<unsigned char> source_of(int pe, size_t bytes) {
  std::vector<unsigned char> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = pattern(pe, i);
  return out;
}

// Relays of running kernels send these bytes in a round, to memory of k_relayed bytes that was poison.
constexpr uint32_t k_relayed = 300008;
__device__ inline unsigned char sent(int pe, uint32_t round, uint32_t i) { return pattern(pe, round * 7919u + i); }
// By a workgroup. The bytes sent last are checked first.
__device__ inline void count_wrong(const unsigned char* in, uint32_t bytes, int from, uint32_t round, uint32_t* wrong) {
  for (uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) {
    const uint32_t at = bytes - 1 - i;
    const auto found = *static_cast<const volatile unsigned char*>(in + at);
    if (found != sent(from, round, at)) atomicAdd(wrong, 1u);
  }
}
inline void expect_relayed(const std::string& what, const unsigned char* in, uint32_t bytes, uint32_t wrong) {
  const std::vector<unsigned char> found = team::read(in, k_relayed);
  const auto is_poison = [](unsigned char c) { return c == k_poison; };
  expect(wrong == 0, "%s: %u bytes were not there when its signal or immediate was", what.c_str(), wrong);
  expect(std::all_of(found.begin() + bytes, found.end(), is_poison), "%s: bytes beside the message changed",
         what.c_str());
}

// --- Scopes ------------------------------------------------------------------------------------------

enum scope { thread, wave, workgroup };
constexpr const char* k_scope_names[] = {"thread", "wave", "workgroup"};

// The op in its form for callers of scope S: xio_put, xio_put_wave or xio_put_wg.
#define RIG_BY_SCOPE(S, op, ...)                                    \
  [&] {                                                             \
    if constexpr (S == rig::thread) return op(__VA_ARGS__);         \
    if constexpr (S == rig::wave) return op##_wave(__VA_ARGS__);    \
    if constexpr (S == rig::workgroup) return op##_wg(__VA_ARGS__); \
  }()

// Which caller of its kind this thread belongs to, and how many there are. On a wave of the host any number of lanes.
struct caller {
  unsigned index, count;
};
template <scope S>
__device__ inline caller who() {
  if constexpr (S == thread) {
    return {static_cast<unsigned>(blockIdx.x * blockDim.x + threadIdx.x),
            static_cast<unsigned>(gridDim.x * blockDim.x)};
  } else if constexpr (S == wave) {
    const unsigned size = static_cast<unsigned>(warpSize);
    const unsigned per_block = (static_cast<unsigned>(blockDim.x) + size - 1) / size;
    return {static_cast<unsigned>(blockIdx.x) * per_block + static_cast<unsigned>(threadIdx.x) / size,
            static_cast<unsigned>(gridDim.x) * per_block};
  } else {
    return {static_cast<unsigned>(blockIdx.x), static_cast<unsigned>(gridDim.x)};
  }
}

// Looks for the word without a pause for a while, so that a reader is as early as it can be: a test of order that comes
// late sees nothing. Says nothing; the wait that follows is what counts.
__device__ inline void stare(const uint64_t* word, uint64_t at_least) {
  for (int turn = 0; turn < 20000; ++turn)
    if (*static_cast<const volatile uint64_t*>(word) >= at_least) return;
}

// Threads of a block that give whole and short waves, and several callers of each kind.
constexpr unsigned k_blocks = 2, k_threads = 96;
// Threads of a workgroup, for one caller of each scope.
constexpr unsigned k_threads_of[] = {1, 32, 96};

}  // namespace rig
