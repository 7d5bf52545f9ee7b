// SPDX-License-Identifier: MIT
// The symmetric heap by kind. Where XIO_HEAP_KIND lets host code touch it (host, managed, and all kinds on the host
// platform), the host writes what kernels send and reads what they got, and both change words while the other looks.
//   heap touched    the host uses plain loads and stores
//   heap copied     the host uses the runtime's copies, which do for every kind
// Atomics of all PEs change one word in either case.
#include "rig.hpp"

namespace {

constexpr size_t k_words = 3000;

bool g_touch = false;

void write_words(uint64_t* to, const std::vector<uint64_t>& from) {
  if (g_touch)
    std::memcpy(to, from.data(), from.size() * sizeof *to);
  else
    rig::team::write(to, from);
}

std::vector<uint64_t> read_words(const uint64_t* from, size_t count) {
  return g_touch ? std::vector<uint64_t>(from, from + count) : rig::team::read(from, count);
}

__global__ void send(xio_ctx_t ctx, uint64_t* in, const uint64_t* out, int to, int* bad) {
  xio_put_wg(ctx, in, out, k_words * sizeof *in, to);
  const xio_status_t s = xio_quiet_wg(ctx);
  if (s != XIO_OK) *bad = s;
}

__global__ void fetch(xio_ctx_t ctx, uint64_t* in, const uint64_t* out, int from, int* bad) {
  const xio_status_t s = xio_get_wg(ctx, in, out, k_words * sizeof *in, from);
  if (s != XIO_OK) *bad = s;
}

__global__ void change(xio_ctx_t ctx, uint64_t* words, int pe, int* bad) {
  xio_status_t s = xio_atomic_add(ctx, &words[0], uint64_t{3}, pe);
  if (s != XIO_OK) *bad = s;
  s = xio_atomic_xor(ctx, &words[1], uint64_t{1} << (threadIdx.x % 64), pe);
  if (s != XIO_OK) *bad = s;
  s = xio_atomic_or(ctx, &words[2], uint64_t{1} << (threadIdx.x % 64), pe);
  if (s != XIO_OK) *bad = s;
  s = xio_quiet(ctx);
  if (s != XIO_OK) *bad = s;
}

// Waits for the host's word and replies, while the host polls.
__global__ void respond(xio_ctx_t ctx, uint64_t* question, uint64_t* reply, uint64_t turns, int* bad) {
  for (uint64_t turn = 1; turn <= turns; ++turn) {
    const xio_status_t s = xio_wait_until(ctx, question, XIO_CMP_GE, turn);
    if (s != XIO_OK) *bad = s;
    xio::dev::fence<xio::dev::scope::system, xio::dev::order::seq_cst>();
    *static_cast<volatile uint64_t*>(reply) = turn * 5;
    xio::dev::fence<xio::dev::scope::system, xio::dev::order::seq_cst>();
  }
}

std::vector<uint64_t> words_of(int pe, uint64_t round) {
  std::vector<uint64_t> words(k_words);
  for (size_t i = 0; i < k_words; ++i) words[i] = round * 1000000007u + static_cast<uint64_t>(pe) * 1000003u + i;
  return words;
}

__global__ void store_by_addresses(const int64_t* table, int n, int me) {
  const int pe = static_cast<int>(threadIdx.x);
  if (pe >= n || table[pe] == 0) return;
  xio::dev::store<xio::dev::scope::system, xio::dev::order::relaxed>(
      reinterpret_cast<uint64_t*>(table[pe]) + me,
      uint64_t{100} * static_cast<uint64_t>(pe) + static_cast<uint64_t>(me) + 1);
  xio::dev::fence<xio::dev::scope::system, xio::dev::order::seq_cst>();
}

// Every PE stores a word at each of the others by the table of their addresses.
void by_addresses(const rig::team& t) {
  auto* words = t.symmetric<uint64_t>(static_cast<size_t>(t.n) + 1);
  write_words(words, std::vector<uint64_t>(static_cast<size_t>(t.n) + 1, 0));
  std::vector<int64_t> table(static_cast<size_t>(t.n) + 1, 77);
  int outside = 0;
  rig::expect_status(xio_ptr_table(t.world(), &outside, table.data()), XIO_ERR_NOT_SYMMETRIC, "a table of no block");
  rig::expect_status(xio_ptr_table(t.world(), words, nullptr), XIO_ERR_ARG, "no table");
  rig::expect(table[0] == 77, "a refused call changed the table");
  MUST(xio_ptr_table(t.world(), words, table.data()));
  rig::expect(table[static_cast<size_t>(t.n)] == 77, "the table is longer than the world");
  for (int pe = 0; pe < t.n; ++pe)
    rig::expect(table[static_cast<size_t>(pe)] == reinterpret_cast<intptr_t>(xio_ptr(t.world(), words, pe)),
                "the address of PE %d is another one than xio_ptr's", pe);
  int64_t* on_device = nullptr;
  MUST(hipMalloc(&on_device, table.size() * sizeof table[0]));
  MUST(hipMemcpy(on_device, table.data(), table.size() * sizeof table[0], hipMemcpyHostToDevice));
  t.barrier();
  RUN(store_by_addresses, 1, 64, on_device, t.n, t.me);
  t.barrier();
  const std::vector<uint64_t> got = read_words(words, static_cast<size_t>(t.n) + 1);
  for (int pe = 0; pe < t.n; ++pe) {
    if (xio_ptr(t.world(), words, pe) == nullptr) continue;
    const uint64_t wanted = uint64_t{100} * static_cast<uint64_t>(t.me) + static_cast<uint64_t>(pe) + 1;
    rig::expect(got[static_cast<size_t>(pe)] == wanted, "PE %d did not store by the table", pe);
  }
  MUST(hipFree(on_device));
}

void between_kernels(const rig::team& t) {
  auto* out = t.symmetric<uint64_t>(k_words);
  auto* in = t.symmetric<uint64_t>(k_words);
  for (uint64_t round = 1; round <= 4; ++round) {
    write_words(out, words_of(t.me, round));
    write_words(in, std::vector<uint64_t>(k_words, 0));
    t.barrier();
    const int bad = round % 2 == 0 ? rig::result_of(send, 1, 128, t.ctx, in, out, t.right)
                                   : rig::result_of(fetch, 1, 128, t.ctx, in, out, t.left);
    t.barrier();
    rig::expect_status(bad, XIO_OK, "a kernel");
    rig::expect(read_words(in, k_words) == words_of(t.left, round), "round %d: what came is not what was sent",
                static_cast<int>(round));
    t.barrier();
  }
}

void atomics(const rig::team& t) {
  auto* words = t.symmetric<uint64_t>(3);
  t.barrier();
  const rig::device_array<int> bad(1);
  constexpr unsigned k_groups = 3, k_threads = 64;
  for (int pe = 0; pe < t.n; ++pe) RUN(change, k_groups, k_threads, t.ctx, words, pe, bad.data());
  t.barrier();
  rig::expect_status(bad.get()[0], XIO_OK, "atomics");
  const std::vector<uint64_t> got = read_words(words, 3);
  const auto n = static_cast<uint64_t>(t.n);
  rig::expect(got[0] == 3 * n * k_groups * k_threads, "the sum is %llu", rig::ull(got[0]));
  rig::expect(got[1] == (n * k_groups % 2 == 0 ? 0 : ~uint64_t{0}), "xor gives %llx", rig::ull(got[1]));
  rig::expect(got[2] == ~uint64_t{0}, "or gives %llx", rig::ull(got[2]));
}

void during_a_kernel(const rig::team& t) {
  constexpr uint64_t k_turns = 50;
  auto* question = t.symmetric<uint64_t>(1);
  auto* reply = t.symmetric<uint64_t>(64) + 32;
  const rig::device_array<int> bad(1);
  hipStream_t stream;
  MUST(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  hipLaunchKernelGGL(respond, dim3(1), dim3(1), 0, stream, t.ctx, question, reply, k_turns, bad.data());
  MUST(hipGetLastError());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  uint64_t responses = 0;
  for (uint64_t turn = 1; turn <= k_turns; ++turn) {
    __atomic_store_n(question, turn, __ATOMIC_RELEASE);
    while (__atomic_load_n(reply, __ATOMIC_ACQUIRE) != turn * 5 && std::chrono::steady_clock::now() < end) {
    }
    responses += __atomic_load_n(reply, __ATOMIC_ACQUIRE) == turn * 5 ? 1 : 0;
  }
  // The kernel ends even if words were missed.
  __atomic_store_n(question, k_turns, __ATOMIC_RELEASE);
  MUST(hipStreamSynchronize(stream));
  MUST(hipStreamDestroy(stream));
  rig::expect(responses == k_turns, "%llu of %llu words got a reply", rig::ull(responses), rig::ull(k_turns));
  rig::expect_status(bad.get()[0], XIO_OK, "a kernel that the host speaks with");
}

}  // namespace

int main(int argc, char** argv) {
  g_touch = argc > 1 && std::strcmp(argv[1], "touched") == 0;
  const rig::team t;
  between_kernels(t);
  by_addresses(t);
  atomics(t);
  if (g_touch) during_a_kernel(t);
  return rig::verdict("heap", t);
}
