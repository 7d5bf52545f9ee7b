// SPDX-License-Identifier: MIT
// Memory of the host platform: heaps that other processes map, buffers, and what software devices do to payload.
// The last test is the platform's promise of progress among processes.
#include <sys/resource.h>
#include <sys/syscall.h>

#include "gpu/gpu.hpp"
#include "gpu/host/stacks.hpp"
#include "refusal.hpp"
#include "xio/device/platform/platform.hpp"
#include "xio/hip.h"

using namespace xio;
using test::expect_words, test::refusal;

namespace {

constexpr int k_any = -1;
int guards_allowed = k_any;  // calls of mprotect that succeed from now on

}  // namespace

// Instead of the C library's, as under vm.max_map_count.
extern "C" int mprotect(void* address, std::size_t bytes, int protection) noexcept {
  if (guards_allowed == 0) {
    errno = ENOMEM;
    return -1;
  }
  if (guards_allowed > 0) --guards_allowed;
  return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

namespace {

// Asks the kernel, which returns an error instead of sending a signal.
bool readable(const void* byte) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const bool yes = write(ends[1], byte, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return yes;
}

// Starts body in a child process, which exits with 0 when body returned true; end_child checks that.
pid_t begin_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  return child;
}

bool end_child(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(host_stacks, have_their_guards_also_after_some_could_not_be_made) {
  host_exec::stack_slabs slabs(16384);
  for (const int good : {0, 5}) {
    guards_allowed = good;
    expect_words(refusal(XIO_ERR_NO_MEMORY, [&] { slabs.make(); }), {"guard pages"});
  }
  guards_allowed = k_any;
  for (int i = 0; i < 65; ++i) {  // more than a slab holds
    const host_exec::stack s = slabs.make();
    s.bottom[0] = s.bottom[s.bytes - 1] = 1;
    EXPECT_FALSE(readable(s.bottom - 1)) << "stack " << i;
  }
}

TEST(host_heap, a_new_heap_is_zero) {
  const auto h = gpu::make_heap(1 << 20);
  ASSERT_EQ(h->size(), 1u << 20);
  for (std::size_t i = 0; i < h->size(); ++i) ASSERT_EQ(h->data()[i], 0);
}

TEST(host_heap, another_process_maps_it) {
  const auto h = gpu::make_heap(100001);
  std::strcpy(reinterpret_cast<char*>(h->data()) + 99000, "from the owner");
  const auto handle = h->handle();
  EXPECT_LE(handle.size(), 256u);
  EXPECT_TRUE(end_child(begin_child([&] {
    const auto m = gpu::map_heap(handle, 100001);
    if (m->data() == h->data()) return false;  // a mapping of its own
    if (std::strcmp(reinterpret_cast<char*>(m->data()) + 99000, "from the owner") != 0) return false;
    std::strcpy(reinterpret_cast<char*>(m->data()) + 5, "from the peer");
    return true;
  })));
  EXPECT_STREQ(reinterpret_cast<char*>(h->data()) + 5, "from the peer");
}

// Another process of the same user opens the heap's file through /proc, as a peer that has gone wrong could.
TEST(host_heap, nobody_cuts_it) {
  constexpr std::size_t k_bytes = 1 << 20;
  const auto h = gpu::make_heap(k_bytes);
  h->data()[k_bytes - 1] = 77;
  const pid_t owner = getpid();
  EXPECT_TRUE(end_child(begin_child([&] {
    int heaps = 0;
    for (int fd = 3; fd < 200; ++fd) {
      const std::string path = "/proc/" + std::to_string(owner) + "/fd/" + std::to_string(fd);
      char target[64] = {};
      if (readlink(path.c_str(), target, sizeof target - 1) < 0 || std::strstr(target, "xio-heap") == nullptr) continue;
      const int file = open(path.c_str(), O_RDWR);
      if (file < 0) return false;
      ++heaps;
      for (const off_t size : {off_t{0}, off_t{4096}, off_t{2 * k_bytes}})
        if (ftruncate(file, size) == 0 || errno != EPERM) return false;
      if (fallocate(file, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, 0, 4096) != 0) return false;  // a store of zeroes
      struct stat st {};
      if (fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) == 0 || fchmod(file, 0600) != 0 || fstat(file, &st) != 0) return false;
      const auto* all = static_cast<unsigned char*>(mmap(nullptr, k_bytes, PROT_READ, MAP_SHARED, file, 0));
      if (st.st_size != k_bytes || all == MAP_FAILED || all[k_bytes - 1] != 77) return false;
    }
    return heaps == 1;
  })));
  EXPECT_EQ(h->data()[k_bytes - 1], 77);
}

TEST(host_heap, says_which_limit_of_files_it_is_beyond) {
  EXPECT_TRUE(end_child(begin_child([] {  // the limit is the process's
    const rlimit small{1 << 20, 1 << 20};
    return setrlimit(RLIMIT_FSIZE, &small) == 0 && guard([] { gpu::make_heap(2 << 20); }) == XIO_ERR_NO_MEMORY &&
           std::strstr(last_error(), "ulimit -f") != nullptr && guard([] { gpu::make_heap(1 << 20); }) == XIO_OK;
  })));
}

TEST(host_heap, forged_and_stale_handles_are_refused) {
  const auto h = gpu::make_heap(1 << 16);
  const auto good = h->handle();
  refusal(XIO_ERR_PEER, [&] { gpu::map_heap(good, 1 << 17); });
  refusal(XIO_ERR_PEER, [&] { gpu::map_heap({good.begin(), good.end() - 1}, 1 << 16); });
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto forged = good;
    forged[i] ^= std::byte{0x01};
    SCOPED_TRACE(i);
    refusal(XIO_ERR_PEER, [&] { gpu::map_heap(forged, 1 << 16); });
  }
  // The descriptor's number is used again by another heap of the same size.
  auto gone = gpu::make_heap(1 << 16);
  const auto stale = gone->handle();
  gone.reset();
  gone = gpu::make_heap(1 << 16);
  expect_words(refusal(XIO_ERR_PEER, [&] { gpu::map_heap(stale, 1 << 16); }), {std::to_string(getpid())});
}

TEST(host_heap, more_than_the_machine_has_is_refused_with_the_number) {
  expect_words(refusal(XIO_ERR_NO_MEMORY, [] { gpu::make_heap(std::size_t{1} << 46); }),
               {"bytes available", "XIO_HEAP_SIZE"});
  refusal(XIO_ERR_CONFIG, [] { gpu::make_heap(0); });
}

TEST(host_heap, a_buffer_is_zeroed_aligned_and_moves) {
  gpu::buffer a(1000, gpu::place::shared, 4096);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 4096, 0u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.as<char>()[i], 0);
  void* at = a.data();
  gpu::buffer b(std::move(a));
  EXPECT_PAIRS((b.data(), at), (b.size(), 1000u), (a.data(), nullptr));
  a = std::move(b);
  EXPECT_EQ(a.data(), at);
  refusal(XIO_ERR_NO_MEMORY, [] { gpu::buffer(~std::size_t{0}, gpu::place::device); });
}

template <class T>
void check_atomics() {
  const auto& p = gpu::payload();
  T words[3] = {7, 0x0f, 9};
  T* w = &words[1];
  const auto go = [&](atomic_op op, T operand, T compare = 0) {
    return static_cast<T>(p.atomic(w, sizeof(T), op, operand, compare));
  };
  EXPECT_PAIRS((go(atomic_op::fetch, 5), T{0x0f}), (go(atomic_op::add, T(-1)), T{0x0f}),
               (go(atomic_op::bit_and, 0x6), T{0x0e}), (go(atomic_op::bit_or, 0x9), T{0x06}),
               (go(atomic_op::bit_xor, 0x3), T{0x0f}), (go(atomic_op::compare_swap, 1, 2), T{0x0c}),
               (go(atomic_op::compare_swap, 1, 0x0c), T{0x0c}), (go(atomic_op::swap, 0), T{1}),
               (go(atomic_op::add, T(-1)), T{0}));
  EXPECT_PAIRS((*w, T(-1)), (words[0], T{7}), (words[2], T{9}));
}

TEST(host_heap, payload_atomics_of_both_widths) {
  check_atomics<std::uint32_t>();
  check_atomics<std::uint64_t>();
}

// Every GPU thread of every process spins for its turn.
__global__ void pass_tokens(dev::u32* tokens, dev::u32 me, dev::u32 players, dev::u32 rounds) {
  dev::u32* token = &tokens[threadIdx.x];
  for (dev::u32 i = 0; i < rounds; ++i) {
    while (dev::load<dev::scope::system, dev::order::acquire>(token) != i * players + me) dev::pause();
    dev::store<dev::scope::system, dev::order::release>(token, i * players + me + 1);
  }
}

TEST(host_heap, four_processes_of_256_spinning_threads_all_progress) {
  constexpr dev::u32 k_players = 4, k_rounds = 50;
  const auto h = gpu::make_heap(1 << 16);
  const auto handle = h->handle();
  const auto start = std::chrono::steady_clock::now();
  pid_t children[k_players];
  for (dev::u32 p = 0; p < k_players; ++p)
    children[p] = begin_child([&] {
      const auto m = gpu::map_heap(handle, 1 << 16);
      hipLaunchKernelGGL(pass_tokens, dim3(1), dim3(256), 0, nullptr, reinterpret_cast<dev::u32*>(m->data()), p,
                         k_players, k_rounds);
      return hipDeviceSynchronize() == hipSuccess;
    });
  for (const pid_t child : children) EXPECT_TRUE(end_child(child));
  for (int t = 0; t < 256; ++t) ASSERT_EQ(reinterpret_cast<dev::u32*>(h->data())[t], k_players * k_rounds);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 20.0);
}

}  // namespace
