// SPDX-License-Identifier: MIT
// Bare copy engine queues: the three steps of xio/sdma.h, kernels that post to them, copies that the host asks for, and
// what all of it refuses.
#include <xio/sdma.h>

#include <atomic>

#include "../mpi/rig.hpp"

namespace {

#define EXPECT(condition) rig::expect((condition), "%s (last error: %s)", #condition, xio_last_error())

// The call is refused with that status, and the sentence says that word.
void refused(xio_status_t got, xio_status_t wanted, const char* word, const char* what) {
  rig::expect(got == wanted && std::strstr(xio_last_error(), word) != nullptr,
              "%s: %s, \"%s\"; expected %s with \"%s\"", what, xio_status_name(got), xio_last_error(),
              xio_status_name(wanted), word);
}
#define REFUSED(call, status, word) refused((call), (status), (word), #call)

constexpr unsigned k_blocks = 3, k_threads = 128, k_lanes = k_blocks * k_threads;
constexpr size_t k_slot = 256;
constexpr size_t k_bytes = k_lanes * k_slot;

struct areas {
  unsigned char *src, *dst;
  uint64_t *signal, *counter;
};

XIO_HOST_DEVICE uint32_t length_of(unsigned lane) { return (lane * 37) % 200; }

// Every lane: a put with both words, a tile of 8 rows and a bare signal; then all of it is waited for.
__global__ void post_all(xio_sdma_queue_t q, areas a, int* bad) {
  const unsigned lane = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned char* dst = a.dst + lane * k_slot;
  const unsigned char* src = a.src + lane * k_slot;
  xio_status_t s = XIO_OK;
  const xio_req_t one =
      xio_sdma_put_signal_counter(q, dst, src, length_of(lane), a.signal, 1, XIO_SIGNAL_ADD, a.counter);
  const xio_req_t two = xio_sdma_put_2d(q, dst + 200, 7, src + 200, 6, 5, 8);
  const xio_req_t three = xio_sdma_signal(q, a.signal + 1, 2, XIO_SIGNAL_ADD);
  if ((s = xio_sdma_wait(q, one)) != XIO_OK || (s = xio_sdma_wait(q, two)) != XIO_OK) atomicCAS(bad, 0, s);
  if ((s = xio_sdma_wait(q, three)) != XIO_OK || (s = xio_sdma_test(q, three)) != XIO_OK) atomicCAS(bad, 0, s);
  if ((s = xio_sdma_wait_signal(q, a.signal, k_lanes)) != XIO_OK) atomicCAS(bad, 0, s);
  if ((s = xio_sdma_wait_counter(q, a.counter, k_lanes)) != XIO_OK) atomicCAS(bad, 0, s);
  if ((s = xio_sdma_quiet(q)) != XIO_OK) atomicCAS(bad, 0, s);
}

// The same by one thread, for a queue with one poster.
__global__ void post_alone(xio_sdma_queue_t q, areas a, int* bad) {
  for (unsigned lane = 0; lane < k_lanes; ++lane) {
    unsigned char* dst = a.dst + lane * k_slot;
    const unsigned char* src = a.src + lane * k_slot;
    xio_sdma_put_signal_counter(q, dst, src, length_of(lane), a.signal, 1, XIO_SIGNAL_ADD, a.counter);
    xio_sdma_put_2d(q, dst + 200, 7, src + 200, 6, 5, 8);
    xio_sdma_signal(q, a.signal + 1, 2, XIO_SIGNAL_ADD);
  }
  xio_status_t s = xio_sdma_wait_counter(q, a.counter, k_lanes);
  if (s == XIO_OK) s = xio_sdma_quiet(q);
  *bad = s;
}

__global__ void wrong_calls(xio_sdma_queue_t q, areas a, int* statuses) {
  const xio_sdma_queue_t none{nullptr, 0};
  unsigned char* dst = a.dst;
  int i = 0;
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put(q, nullptr, a.src, 8));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put(q, dst, nullptr, 8));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put(q, dst + 4, dst, 8));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_signal(q, nullptr, 1, XIO_SIGNAL_ADD));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_signal(q, reinterpret_cast<uint64_t*>(dst + 4), 1, XIO_SIGNAL_ADD));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_signal(q, a.signal, 1, xio_signal_op_t(7)));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put_counter(q, dst, a.src, 8, reinterpret_cast<uint64_t*>(dst + 1)));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put_2d(q, dst, 4, a.src, 8, 5, 2));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put_2d(q, dst, 8, a.src, 8, 5, ~size_t{0}));
  statuses[i++] = xio_sdma_wait_signal(q, nullptr, 1);
  statuses[i++] = xio_sdma_wait(none, xio_sdma_put(none, dst, a.src, 8));
  statuses[i++] = xio_sdma_quiet(none);
  // Nothing of it was posted, and the queue goes on.
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put(q, dst, a.src, 0));
  statuses[i++] = xio_sdma_wait(q, xio_sdma_put_2d(q, dst, 0, a.src, 0, 0, 5));
  statuses[i++] = xio_sdma_quiet(q);
  // The counter never comes: the link's timeout.
  statuses[i++] = xio_sdma_wait_counter(q, a.counter, ~uint64_t{0});
}

__global__ void put_once(xio_sdma_queue_t q, void* dst, const void* src, size_t bytes, int* status) {
  *status = xio_sdma_wait(q, xio_sdma_put(q, dst, src, bytes));
}

// As XIO_HEAP_KIND says it to worlds: in host memory the engine changes words without a kernel of its own.
bool in_host_memory() {
  const char* kind = std::getenv("XIO_HEAP_KIND");
  return kind != nullptr && std::strcmp(kind, "host") == 0;
}

template <class T>
T* memory(size_t count) {
  void* p = nullptr;
  MUST(in_host_memory() ? hipHostMalloc(&p, count * sizeof(T)) : hipMalloc(&p, count * sizeof(T)));
  MUST(hipMemset(p, 0, count * sizeof(T)));
  return static_cast<T*>(p);
}
void give_back(void* p) { EXPECT((in_host_memory() ? hipHostFree(p) : hipFree(p)) == hipSuccess); }

template <class T>
std::vector<T> read(const T* from, size_t count) {
  return rig::team::read(from, count);
}

struct bench {
  xio_sdma_link_t* link = nullptr;
  areas a{};
  int* statuses = nullptr;
  std::vector<unsigned char> data = rig::source_of(0, k_bytes);

  bench() {
    xio_sdma_link_attr_t attr = XIO_SDMA_LINK_ATTR_INIT;
    attr.timeout_ms = 10000;  // once in full; machines have other things to do
    EXPECT(xio_sdma_connect(&attr, &link) == XIO_OK);
    a.src = memory<unsigned char>(k_bytes);
    a.dst = memory<unsigned char>(k_bytes);
    a.signal = memory<uint64_t>(2);
    a.counter = memory<uint64_t>(1);
    statuses = memory<int>(32);
    EXPECT(xio_sdma_map(link, a.src, k_bytes) == XIO_OK && xio_sdma_map(link, a.dst, k_bytes) == XIO_OK &&
           xio_sdma_map(link, a.signal, 16) == XIO_OK && xio_sdma_map(link, a.counter, 8) == XIO_OK);
    rig::team::write(a.src, data);
    clear();
  }
  ~bench() {
    for (void* p : {static_cast<void*>(a.src), static_cast<void*>(a.dst), static_cast<void*>(a.signal),
                    static_cast<void*>(a.counter), static_cast<void*>(statuses)})
      give_back(p);
  }
  void clear() {
    rig::team::write(a.dst, std::vector<unsigned char>(k_bytes, 0xA5));
    rig::team::write(a.signal, std::vector<uint64_t>(2));
    rig::team::write(a.counter, std::vector<uint64_t>(1));
    rig::team::write(statuses, std::vector<int>(32));
  }
  void expect_all() {
    std::vector<unsigned char> wanted(k_bytes, 0xA5);
    for (unsigned lane = 0; lane < k_lanes; ++lane) {
      for (uint32_t i = 0; i < length_of(lane); ++i) wanted[lane * k_slot + i] = data[lane * k_slot + i];
      for (unsigned row = 0; row < 8; ++row)
        for (unsigned i = 0; i < 5; ++i)
          wanted[lane * k_slot + 200 + row * 7 + i] = data[lane * k_slot + 200 + row * 6 + i];
    }
    EXPECT(read(a.dst, k_bytes) == wanted);
    EXPECT(read(a.signal, 2)[0] == k_lanes && read(a.signal, 2)[1] == 2 * k_lanes);
    EXPECT(read(a.counter, 1)[0] == k_lanes);
    EXPECT(read(statuses, 1)[0] == XIO_OK);
  }
};

void kernels_post(bench& b) {
  for (const uint32_t ring : {256u, 0u, 1u << 16}) {
    for (const uint32_t single : {0u, 1u}) {
      b.clear();
      xio_sdma_queue_attr_t attr = XIO_SDMA_QUEUE_ATTR_INIT;
      attr.ring_bytes = ring;
      attr.single_thread = single;
      xio_sdma_queue_t q{};
      EXPECT(xio_sdma_queue_create(b.link, &attr, &q) == XIO_OK);
      if (single != 0)
        RUN(post_alone, 1, 1, q, b.a, b.statuses);
      else
        RUN(post_all, k_blocks, k_threads, q, b.a, b.statuses);
      b.expect_all();
      xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
      EXPECT(xio_sdma_queue_stats(b.link, q, &stats) == XIO_OK);
      EXPECT(stats.ops >= 3 * k_lanes && stats.doorbells > 0 && stats.doorbells <= stats.ops);
      xio_error_info_t info = XIO_ERROR_INFO_INIT;
      EXPECT(xio_sdma_queue_error(b.link, q, &info) == XIO_OK && info.status == XIO_OK);
      EXPECT(xio_sdma_queue_destroy(b.link, q) == XIO_OK);
      REFUSED(xio_sdma_queue_destroy(b.link, q), XIO_ERR_STATE, "destroyed already");
    }
  }
}

void wrong_calls_are_refused(bench& b) {
  b.clear();
  xio_sdma_queue_t q{};
  EXPECT(xio_sdma_queue_create(b.link, nullptr, &q) == XIO_OK);
  RUN(wrong_calls, 1, 1, q, b.a, b.statuses);
  const std::vector<int> got = read(b.statuses, 16);
  for (int i = 0; i < 10; ++i) rig::expect(got[i] == XIO_ERR_ARG, "wrong call %d: %d", i, got[i]);
  EXPECT(got[10] == XIO_ERR_STATE && got[11] == XIO_ERR_STATE);
  EXPECT(got[12] == XIO_OK && got[13] == XIO_OK && got[14] == XIO_OK);
  EXPECT(got[15] == XIO_ERR_TIMEOUT);
  EXPECT(read(b.a.dst, k_bytes) == std::vector<unsigned char>(k_bytes, 0xA5));
  // Memory that nobody mapped: the engine stops, says where, and only this queue is lost.
  auto* stranger = memory<unsigned char>(64);
  RUN(put_once, 1, 1, q, stranger, b.a.src, size_t{64}, b.statuses);
  EXPECT(read(b.statuses, 1)[0] == XIO_ERR_TRANSPORT);
  xio_error_info_t info = XIO_ERROR_INFO_INIT;
  EXPECT(xio_sdma_queue_error(b.link, q, &info) == XIO_OK && info.status == XIO_ERR_TRANSPORT);
  EXPECT(std::strcmp(info.engine, "sdma") == 0 && info.vendor != 0);
  EXPECT(std::strstr(info.sentence, "failed: an address is not mapped (code 0xb); ") != nullptr);
  EXPECT(read(stranger, 64) == std::vector<unsigned char>(64));
  EXPECT(xio_sdma_queue_destroy(b.link, q) == XIO_OK);
  give_back(stranger);
}

void the_host_copies(bench& b) {
  b.clear();
  EXPECT(xio_sdma_copy(b.link, b.a.dst + 3, b.a.src + 1, 1001) == XIO_OK);
  std::vector<unsigned char> wanted(k_bytes, 0xA5);
  std::memcpy(wanted.data() + 3, b.data.data() + 1, 1001);
  EXPECT(read(b.a.dst, k_bytes) == wanted);
  EXPECT(xio_sdma_copy(b.link, b.a.dst, b.a.src, 0) == XIO_OK);
  // Many at once, from several threads, round a ring of 64.
  b.clear();
  std::vector<std::thread> threads;
  std::vector<int> bad(4);
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      xio_req_t last = 0;
      for (unsigned i = t; i < k_lanes; i += 4)
        if (xio_sdma_copy_start(b.link, b.a.dst + i * k_slot, b.a.src + i * k_slot, k_slot, &last) != XIO_OK) ++bad[t];
      if (xio_sdma_copy_wait(b.link, last) != XIO_OK) ++bad[t];
    });
  for (auto& t : threads) t.join();
  EXPECT(bad == std::vector<int>(4));
  EXPECT(read(b.a.dst, k_bytes) == b.data);
  // Into pinned host memory.
  void* pinned = nullptr;
  MUST(hipHostMalloc(&pinned, k_bytes, 0));
  EXPECT(xio_sdma_map(b.link, pinned, k_bytes) == XIO_OK);
  EXPECT(xio_sdma_copy(b.link, pinned, b.a.src, k_bytes) == XIO_OK);
  EXPECT(std::memcmp(pinned, b.data.data(), k_bytes) == 0);
  EXPECT(xio_sdma_unmap(b.link, pinned) == XIO_OK);
  (void)hipHostFree(pinned);

  REFUSED(xio_sdma_copy(b.link, nullptr, b.a.src, 8), XIO_ERR_ARG, "two addresses");
  REFUSED(xio_sdma_copy(b.link, b.a.dst, b.a.dst + 4, 8), XIO_ERR_ARG, "overlap");
  REFUSED(xio_sdma_copy(b.link, b.a.dst, b.a.src, ~size_t{0}), XIO_ERR_ARG, "address space");
  REFUSED(xio_sdma_copy_wait(b.link, 1u << 30), XIO_ERR_ARG, "never started");
  REFUSED(xio_sdma_copy_start(b.link, b.a.dst, b.a.src, 8, nullptr), XIO_ERR_ARG, "request is null");
}

// A copy that was complete when the engine stopped stays so, and those behind it have failed.
void a_copy_keeps_its_result(bench& b) {
  auto* stranger = memory<unsigned char>(64);
  xio_req_t good = 0, wrong = 0;
  EXPECT(xio_sdma_copy_start(b.link, b.a.dst, b.a.src, 64, &good) == XIO_OK);
  EXPECT(xio_sdma_copy_start(b.link, stranger, b.a.src, 64, &wrong) == XIO_OK);
  REFUSED(xio_sdma_copy_wait(b.link, wrong), XIO_ERR_TRANSPORT, "stopped with code");
  EXPECT(xio_sdma_copy_wait(b.link, good) == XIO_OK);
  REFUSED(xio_sdma_copy_wait(b.link, wrong), XIO_ERR_TRANSPORT, "stopped with code");
  REFUSED(xio_sdma_copy(b.link, b.a.dst, b.a.src, 64), XIO_ERR_TRANSPORT, "stopped with code");
  give_back(stranger);
}

// One thread creates and destroys; the other polls a queue that stays all the while.
void polls_during_comings_and_goings(bench& b) {
  xio_sdma_queue_t stays{};
  EXPECT(xio_sdma_queue_create(b.link, nullptr, &stays) == XIO_OK);
  std::atomic<bool> looking{false}, over{false};
  int bad_looks = 0, bad_changes = 0;
  std::thread looker([&] {
    for (; !over; looking = true) {
      xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
      xio_error_info_t info = XIO_ERROR_INFO_INIT;
      if (xio_sdma_queue_stats(b.link, stays, &stats) != XIO_OK || stats.ops != 0) ++bad_looks;
      if (xio_sdma_queue_error(b.link, stays, &info) != XIO_OK || info.status != XIO_OK) ++bad_looks;
    }
  });
  while (!looking) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) {
    xio_sdma_queue_t q[3] = {};
    for (auto& one : q) bad_changes += xio_sdma_queue_create(b.link, nullptr, &one) != XIO_OK;
    for (auto& one : q) bad_changes += xio_sdma_queue_destroy(b.link, one) != XIO_OK;
  }
  over = true;
  looker.join();
  EXPECT(bad_looks == 0 && bad_changes == 0);
  EXPECT(xio_sdma_queue_destroy(b.link, stays) == XIO_OK);
}

void links_refuse(bench& b) {
  xio_sdma_link_t* other = nullptr;
  REFUSED(xio_sdma_connect(nullptr, nullptr), XIO_ERR_ARG, "link is null");
  xio_sdma_link_attr_t attr = XIO_SDMA_LINK_ATTR_INIT;
  attr.src_device = 4711;
  REFUSED(xio_sdma_connect(&attr, &other), XIO_ERR_ARG, "source device 4711");
  attr.src_device = 0;
  attr.dst_device = -3;
  REFUSED(xio_sdma_connect(&attr, &other), XIO_ERR_ARG, "destination device -3");
  attr.dst_device = XIO_SDMA_HOST;
  attr.reserved = 1;
  REFUSED(xio_sdma_connect(&attr, &other), XIO_ERR_CONFIG, "reserved");
  attr.size = 3;
  REFUSED(xio_sdma_connect(&attr, &other), XIO_ERR_CONFIG, "size");
  EXPECT(other == nullptr);
  xio_sdma_queue_attr_t how = XIO_SDMA_QUEUE_ATTR_INIT;
  xio_sdma_queue_t q{};
  for (const uint32_t ring : {1u, 128u, 255u, 300u, 3u << 20, 4u << 20}) {
    how.ring_bytes = ring;
    REFUSED(xio_sdma_queue_create(b.link, &how, &q), XIO_ERR_CONFIG, "power of two from 256");
  }
  how = XIO_SDMA_QUEUE_ATTR_INIT;
  how.single_thread = 2;
  REFUSED(xio_sdma_queue_create(b.link, &how, &q), XIO_ERR_CONFIG, "single_thread");
  REFUSED(xio_sdma_queue_create(b.link, nullptr, nullptr), XIO_ERR_ARG, "queue is null");
  REFUSED(xio_sdma_queue_create(nullptr, nullptr, &q), XIO_ERR_ARG, "link is null");
  REFUSED(xio_sdma_queue_destroy(b.link, q), XIO_ERR_ARG, "empty");
  REFUSED(xio_sdma_map(b.link, nullptr, 8), XIO_ERR_ARG, "no memory");
  REFUSED(xio_sdma_map(b.link, b.a.src, 0), XIO_ERR_ARG, "no memory");
  REFUSED(xio_sdma_unmap(b.link, nullptr), XIO_ERR_ARG, "null");
}

}  // namespace

int main() {
  {
    bench b;
    if (b.link == nullptr) return 1;
    kernels_post(b);
    wrong_calls_are_refused(b);
    the_host_copies(b);
    polls_during_comings_and_goings(b);
    links_refuse(b);
    a_copy_keeps_its_result(b);
    EXPECT(xio_sdma_disconnect(b.link) == XIO_OK);
    REFUSED(xio_sdma_disconnect(b.link), XIO_ERR_STATE, "disconnected");
    REFUSED(xio_sdma_copy(b.link, b.a.dst, b.a.src, 8), XIO_ERR_STATE, "xio_sdma_connect");
  }
  return rig::verdict("sdma_queue");
}
