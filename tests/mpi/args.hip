// SPDX-License-Identifier: MIT
// Wrong arguments: the status comes at once and once more from quiet, nothing moves, and the ctx works afterwards.
#include "rig.hpp"

namespace {

constexpr size_t k_bytes = 4096;
// More than any NIC carries in the entry itself, where the source needs no key.
constexpr size_t k_foreign = 512;

struct place {
  unsigned char *sym, *local, *foreign;  // symmetric; symmetric source; device memory that is not symmetric
  size_t heap_left;                      // bytes from sym to the end of the heap
  size_t endless;                        // ~0, which compilers would warn of
  uint64_t* word;
  int n;
};

// Every line is one mistake; *bad gets the number of the first that had another result.
__global__ void mistakes(xio_ctx_t ctx, place p, int* bad) {
  int line = 0;
  const auto same = [&](xio_status_t got, xio_status_t wanted) {
    ++line;
    if (got != wanted && *bad == 0) *bad = line;
  };
  const auto mistake = [&](xio_status_t got, xio_status_t wanted) {
    same(got, wanted);
    --line;
    same(xio_quiet(ctx), wanted);
    --line;
    same(xio_quiet(ctx), XIO_OK);
  };
  const auto request = [&](xio_req_t r, xio_status_t wanted) {
    same(xio_wait(ctx, r), wanted);
    --line;
    mistake(xio_test(ctx, r), wanted);
  };
  uint64_t* odd = reinterpret_cast<uint64_t*>(p.sym + 4);
  // 1: PEs
  mistake(xio_put(ctx, p.sym, p.local, 8, p.n), XIO_ERR_PE);
  mistake(xio_put(ctx, p.sym, p.local, 8, -1), XIO_ERR_PE);
  mistake(xio_put(ctx, p.sym, p.local, 0, p.n), XIO_ERR_PE);
  mistake(xio_get(ctx, p.local, p.sym, 8, 1 << 30), XIO_ERR_PE);
  // 5: null
  mistake(xio_put(ctx, nullptr, p.local, 8, 0), XIO_ERR_ARG);
  mistake(xio_put(ctx, p.sym, nullptr, 8, 0), XIO_ERR_ARG);
  mistake(xio_get(ctx, nullptr, p.sym, 8, 0), XIO_ERR_ARG);
  mistake(xio_put_signal(ctx, p.sym, p.local, 8, nullptr, 1, XIO_SIGNAL_SET, 0), XIO_ERR_ARG);
  // 9: not symmetric
  mistake(xio_put(ctx, p.foreign, p.local, 8, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_get(ctx, p.local, p.foreign, 8, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put_signal(ctx, p.sym, p.local, 8, reinterpret_cast<uint64_t*>(p.foreign), 1, XIO_SIGNAL_SET, 0),
          XIO_ERR_NOT_SYMMETRIC);
  // 12: leaving the heap, at its end, at its start, and around the address space
  mistake(xio_put(ctx, p.sym, p.local, p.heap_left + 1, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put(ctx, p.sym + p.heap_left, p.local, 1, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_get(ctx, p.local, p.sym, p.endless, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put(ctx, xio::dev::ctx_of(ctx).world->heap, p.local, 8, 0), XIO_ERR_NOT_SYMMETRIC);
  // 16: requests of refused ops
  request(xio_put_nbi(ctx, p.sym, p.local, 8, p.n), XIO_ERR_PE);
  request(xio_get_nbi(ctx, p.local, p.foreign, 8, 0), XIO_ERR_NOT_SYMMETRIC);
  request(xio_put_signal_nbi(ctx, p.sym, p.local, 8, p.word, 1, xio_signal_op_t(7), 0), XIO_ERR_ARG);
  // 19: what is no request
  same(xio_wait(ctx, xio_req_t{0x7000} << 48), XIO_ERR_ARG);
  same(xio_test(ctx, (xio_req_t{0x8001} << 48) + 5), XIO_ERR_ARG);
  same(xio_wait(ctx, 0), XIO_OK);
  // Of a ring that is there, if any, and a ticket that it has not given: refused at once, and it goes on.
  same(xio_wait(ctx, (xio_req_t{1} << 48) + 1000000), XIO_ERR_ARG);
  same(xio_test(ctx, (xio_req_t{1} << 48) + 1000000), XIO_ERR_ARG);
  xio_g(ctx, p.word, p.n - 1);
  same(xio_quiet(ctx), XIO_OK);
  // 25: signals
  mistake(xio_signal_op(ctx, p.word, 1, xio_signal_op_t(2), 0), XIO_ERR_ARG);
  mistake(xio_signal_op(ctx, odd, 1, XIO_SIGNAL_ADD, 0), XIO_ERR_ARG);
  mistake(xio_put_signal(ctx, p.sym, p.local, 8, odd, 1, XIO_SIGNAL_SET, 0), XIO_ERR_ARG);
  // 28: scalars and atomics
  mistake(xio_p(ctx, odd, 1, 0), XIO_ERR_ARG);
  mistake(xio_p(ctx, p.word, 1, p.n), XIO_ERR_PE);
  mistake(xio_atomic_add(ctx, odd, 1, 0), XIO_ERR_ARG);
  mistake(xio_atomic_set(ctx, reinterpret_cast<uint64_t*>(p.foreign), 1, 0), XIO_ERR_NOT_SYMMETRIC);
  // 32: fetching forms have no status of their own
  if (xio_g(ctx, p.word, -5) != 0) *bad = 1000;
  same(xio_quiet(ctx), XIO_ERR_PE);
  if (xio_atomic_fetch_add(ctx, odd, 1, 0) != 0) *bad = 1001;
  same(xio_quiet(ctx), XIO_ERR_ARG);
  same(xio_quiet(ctx), XIO_OK);
  // 35: strides and tiles
  const auto* from = reinterpret_cast<const uint64_t*>(p.local);
  mistake(xio_iput(ctx, p.word, from, 0, 1, 4, 0), XIO_ERR_ARG);
  mistake(xio_iput(ctx, p.word, from, 1, -1, 4, 0), XIO_ERR_ARG);
  mistake(xio_iget(ctx, reinterpret_cast<uint64_t*>(p.local), p.word, 1, PTRDIFF_MAX, 4, 0), XIO_ERR_ARG);
  mistake(xio_iput(ctx, reinterpret_cast<uint64_t*>(p.sym), from, 1 << 28, 1, 2, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put_2d(ctx, p.sym, 7, p.local, 8, 8, 2, 0), XIO_ERR_ARG);
  mistake(xio_put_2d(ctx, p.sym, 8, p.local, 7, 8, 2, 0), XIO_ERR_ARG);
  mistake(xio_put_2d(ctx, p.sym, ~size_t{0}, p.local, 8, 8, 3, 0), XIO_ERR_ARG);
  mistake(xio_put_2d(ctx, p.sym, 8, p.local, size_t{1} << 63, 8, 3, 0), XIO_ERR_ARG);
  // 43: PE of fence and quiet
  mistake(xio_fence_pe(ctx, p.n), XIO_ERR_PE);
  mistake(xio_quiet_pe(ctx, -1), XIO_ERR_PE);
  // 45: no ctx at all
  const xio_ctx_t none{};
  same(xio_put(none, p.sym, p.local, 8, 0), XIO_ERR_STATE);
  same(xio_quiet(none), XIO_ERR_STATE);
  same(xio_barrier_all(none), XIO_ERR_STATE);
  if (xio_g(none, p.word, 0) != 0 || xio_my_pe(none) != -1 || xio_ptr(none, p.sym, 0) != nullptr) *bad = 1002;
  // 48: the first mistake is the one that quiet tells
  xio_put(ctx, p.sym, p.local, 8, p.n);
  xio_put(ctx, p.foreign, p.local, 8, 0);
  same(xio_quiet(ctx), XIO_ERR_PE);
  same(xio_quiet(ctx), XIO_OK);
  // 50: marked as of a refused op, with a status that there is not
  for (const xio_req_t made_up : {~xio_req_t{0}, xio_req_t{0xffff} << 48, (xio_req_t{0xffff} << 48) + 17}) {
    same(xio_wait(ctx, made_up), XIO_ERR_ARG);
    same(xio_test(ctx, made_up), XIO_ERR_ARG);
    same(xio_wait_source(ctx, made_up), XIO_ERR_ARG);
  }
  // 59: with one that there is
  same(xio_wait(ctx, (xio_req_t{0xffff} << 48) + 16), XIO_ERR_INTERNAL);
  same(xio_quiet(ctx), XIO_OK);
}

// Some platforms store these before they have checked everything: words, signals and packets, with PEs whose low bits
// name one that is there, addresses of no word, and no ctx.
__global__ void early_mistakes(xio_ctx_t ctx, place p, int* bad) {
  const int beyond[] = {8, 24, 31, 32, 40, 64, 1 << 30, -8, -2147483647 - 1};
  int line = 0;
  const auto mistake = [&](xio_status_t got, xio_status_t wanted) {
    ++line;
    const bool again = xio_quiet(ctx) == wanted && xio_quiet(ctx) == XIO_OK;
    if ((got != wanted || !again) && *bad == 0) *bad = line;
  };
  for (const int pe : beyond) {
    if (pe >= 0 && pe < p.n) continue;
    mistake(xio_put(ctx, p.sym, p.local, 8, pe), XIO_ERR_PE);
    mistake(xio_signal_op(ctx, p.word, 1, XIO_SIGNAL_SET, pe), XIO_ERR_PE);
    mistake(xio_put_packet(ctx, p.sym, p.local, 64, 1, pe), XIO_ERR_PE);
    mistake(xio_put_packet(ctx, p.sym, p.local, 4, 1, pe), XIO_ERR_PE);
  }
  line = 100;
  mistake(xio_signal_op(ctx, reinterpret_cast<uint64_t*>(p.sym + 4), 1, XIO_SIGNAL_SET, 0), XIO_ERR_ARG);
  mistake(xio_signal_op(ctx, reinterpret_cast<uint64_t*>(p.foreign), 1, XIO_SIGNAL_SET, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put_packet(ctx, p.sym + 4, p.local, 8, 1, 0), XIO_ERR_ARG);
  mistake(xio_put_packet(ctx, p.sym + 4, p.local, 8, 1, p.n), XIO_ERR_PE);
  mistake(xio_put_packet(ctx, p.foreign + 4, p.local, 8, 1, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put_packet(ctx, p.sym + p.heap_left - 64, p.local, 64, 1, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put(ctx, p.sym + p.heap_left - 4, p.local, 8, 0), XIO_ERR_NOT_SYMMETRIC);
  mistake(xio_put(ctx, p.sym + p.heap_left, p.local, 8, 0), XIO_ERR_NOT_SYMMETRIC);
  const xio_ctx_t none{};
  if (xio_signal_op(none, p.word, 1, XIO_SIGNAL_SET, 0) != XIO_ERR_STATE) *bad = 1000;
  if (xio_put_packet(none, p.sym, p.local, 8, 1, 0) != XIO_ERR_STATE) *bad = 1001;
}

// By a whole workgroup: every thread gets the same result.
__global__ void mistakes_together(xio_ctx_t ctx, place p, int* bad) {
  if (xio_put_wg(ctx, p.foreign, p.local, 8, 0) != XIO_ERR_NOT_SYMMETRIC) *bad = 1;
  if (xio_get_wave(ctx, p.local, p.sym, 8, p.n) != XIO_ERR_PE) *bad = 2;
  if (xio_wait(ctx, xio_put_nbi_wg(ctx, nullptr, p.local, 8, 0)) != XIO_ERR_ARG) *bad = 3;
  if (xio_put_signal_wg(ctx, p.sym, p.local, 8, p.word, 1, xio_signal_op_t(9), 0) != XIO_ERR_ARG) *bad = 4;
  if (xio_quiet_wg(ctx) == XIO_OK) *bad = 5;
  if (xio_quiet_wg(ctx) != XIO_OK) *bad = 6;
}

// Local memory that is not symmetric: load/store takes it, engines ask for its registration.
__global__ void use_foreign(xio_ctx_t ctx, place p, int pe, int* put, int* get, int* quiet) {
  *put = xio_put(ctx, p.sym, p.foreign, k_foreign, pe);
  *get = xio_get(ctx, p.foreign + k_foreign, p.local, k_foreign, pe);
  *quiet = xio_quiet(ctx);
}

// The mistake of that number, in the order of `named` below.
__global__ void one_mistake(xio_ctx_t ctx, place p, int number) {
  uint64_t* odd = reinterpret_cast<uint64_t*>(p.sym + 4);
  unsigned* odder = reinterpret_cast<unsigned*>(p.sym + 2);
  uint64_t* none = nullptr;
  size_t index = 0;
  switch (number) {
    case 0: (void)xio_put_nbi(ctx, p.sym, p.local, 8, p.n); break;
    case 1: (void)xio_get(ctx, p.local, p.foreign, 24, 0); break;
    case 2: (void)xio_p(ctx, odd, uint64_t{1}, 0); break;
    case 3: (void)xio_g(ctx, odder, 0); break;
    case 4: (void)xio_atomic_add(ctx, odd, uint64_t{1}, 0); break;
    case 5: (void)xio_atomic_fetch_add(ctx, p.word, uint64_t{1}, -1); break;
    case 6: (void)xio_atomic_swap(ctx, odder, 1u, 0); break;
    case 7: (void)xio_atomic_compare_swap(ctx, odder, 1u, 2u, 0); break;
    case 8: (void)xio_put_2d(ctx, p.sym, 4, p.local, 16, 8, 3, 0); break;
    case 9: (void)xio_iput(ctx, p.sym, p.local, 0, 1, 5, 0); break;
    case 10: (void)xio_iget(ctx, p.local, p.sym, 1, -1, 5, 0); break;
    case 11: (void)xio_put_signal(ctx, p.sym, p.local, 8, odd, 1, XIO_SIGNAL_SET, 0); break;
    case 12: (void)xio_signal_op(ctx, p.word, 1, XIO_SIGNAL_ADD, p.n); break;
    case 13: (void)xio_wait_until(ctx, odd, XIO_CMP_EQ, uint64_t{1}); break;
    case 14: (void)xio_wait_counter(ctx, none, 1); break;
    case 15: (void)xio_signal_wait_until(ctx, none, XIO_CMP_EQ, 1); break;
    case 16: (void)xio_put_packet(ctx, p.sym, p.local, 3, 1, 0); break;
    case 17: (void)xio_put_imm(ctx, p.sym, p.local, 8, 1, 0); break;
    case 18: (void)xio_fence_pe(ctx, p.n); break;
    case 19: (void)xio_quiet_pe(ctx, -2); break;
    case 20: (void)xio_put_counter(ctx, p.sym, p.local, 8, odd, 0); break;
    case 21: (void)xio_wait_until_all(ctx, odd, 2, nullptr, XIO_CMP_EQ, uint64_t{1}); break;
    case 22: (void)xio_get_2d(ctx, p.sym, 16, p.local, 4, 8, 3, 0); break;
    case 23: (void)xio_wait_until_any_vector(ctx, p.word, 2, nullptr, XIO_CMP_EQ, none, &index); break;
    case 24: (void)xio_wait_until(ctx, reinterpret_cast<const float*>(odder), XIO_CMP_EQ, 1.5f); break;
    default: break;
  }
}

#if defined(XIO_PLATFORM_HOST)
// A call of the host, where nothing but the library can see that a kernel makes it.
__global__ void call_host(xio_world_t* world, int* status) {
  *status = xio_host_barrier(world);
  void* p = nullptr;
  if (xio_malloc(world, 64, &p) != XIO_ERR_STATE) *status = XIO_OK;
}
#endif

struct sentence {
  xio_status_t status;
  const char* call;     // what the sentence begins with
  const char* says[2];  // and what else is in it, null: no more
};

// `odd` is p.sym + 4 and so on, in words of the heap's offset; PEs as numbers.
const sentence k_named[] = {
    {XIO_ERR_PE, "xio_put of 8 bytes at ", {"there is no such PE", "(xio_n_pes() - 1)"}},
    {XIO_ERR_NOT_SYMMETRIC, "xio_get of 24 bytes at ", {", PE 0: ", "xio_malloc"}},
    {XIO_ERR_ARG, "xio_p of 8 bytes at ", {"4), PE 0: ", "address is no multiple of its"}},
    {XIO_ERR_ARG, "xio_g of 4 bytes at ", {"2), PE 0: ", "address is no multiple of its"}},
    {XIO_ERR_ARG, "xio_atomic_add of 8 bytes at ", {"4), PE 0: ", "address is no multiple of its"}},
    {XIO_ERR_PE, "xio_atomic_fetch_add of 8 bytes at ", {", PE -1: ", "there is no such PE"}},
    {XIO_ERR_ARG, "xio_atomic_swap of 4 bytes at ", {"2), PE 0: ", "address is no multiple of its"}},
    {XIO_ERR_ARG, "xio_atomic_compare_swap of 4 bytes at ", {"2), PE 0: ", "address is no multiple of its"}},
    {XIO_ERR_ARG, "xio_put_2d of 24 bytes at ", {", PE 0: ", "a pitch is less than the width"}},
    {XIO_ERR_ARG, "xio_iput of 5 bytes at ", {", PE 0: ", "a stride is less than 1"}},
    {XIO_ERR_ARG, "xio_iget of 5 bytes at ", {", PE 0: ", "a stride is less than 1"}},
    {XIO_ERR_ARG, "xio_put_signal of 8 bytes at ", {"4), PE 0: ", "address is no multiple of its"}},
    {XIO_ERR_PE, "xio_signal_op of 8 bytes at ", {"heap + ", "there is no such PE"}},
    {XIO_ERR_ARG, "xio_wait_until of 8 bytes at ", {"4): ", "address is no multiple of its"}},
    {XIO_ERR_ARG, "xio_wait_counter of 8 bytes: ", {"the counter's address is null", nullptr}},
    {XIO_ERR_ARG, "xio_signal_wait_until of 8 bytes: ", {"the word's address is null", nullptr}},
    {XIO_ERR_ARG, "xio_put_packet of 3 bytes at ", {", PE 0: ", "4 to 64 bytes"}},
    {XIO_ERR_UNSUPPORTED, "xio_put_imm of 8 bytes at ", {", PE 0: ", "cannot do it"}},
    {XIO_ERR_PE, "xio_fence_pe, PE ", {"there is no such PE", nullptr}},
    {XIO_ERR_PE, "xio_quiet_pe, PE -2: ", {"there is no such PE", nullptr}},
    {XIO_ERR_ARG, "xio_put_counter of 8 bytes at ", {"4): ", "address is no multiple of its"}},
    {XIO_ERR_ARG, "xio_wait_until_all of 8 bytes at ", {"4): ", "address is no multiple of its"}},
    {XIO_ERR_ARG, "xio_get_2d of 24 bytes at ", {", PE 0: ", "a pitch is less than the width"}},
    {XIO_ERR_ARG, "xio_wait_until_any of 8 bytes at ", {"heap + ", "null"}},
    {XIO_ERR_ARG, "xio_wait_until of 4 bytes at ", {"2): ", "address is no multiple of its"}},
};

void expect_sentence(const rig::team& t, const sentence& wanted, const char* when) {
  const xio_error_info_t info = rig::error_of(t);
  bool good = info.status == wanted.status && std::strcmp(info.engine, "device") == 0 &&
              std::strncmp(info.sentence, wanted.call, std::strlen(wanted.call)) == 0;
  for (const char* part : wanted.says) good = good && (part == nullptr || std::strstr(info.sentence, part) != nullptr);
  rig::expect(good, "%s%s, the host reads %s from %s: \"%s\"", wanted.call, when, xio_status_name(info.status),
              info.engine, info.sentence);
}

// xio_ctx_error names the call that failed last, until another one fails: quiet, good calls and time change nothing.
void sentences(const rig::team& t, const place& p) {
  int number = 0;
  for (const sentence& wanted : k_named) {
    RUN(one_mistake, 1, 1, t.ctx, p, number++);
    expect_sentence(t, wanted, "");
    rig::expect_quiet(t.ctx, wanted.status, "quiet after a mistake");
    rig::expect_quiet(t.ctx, XIO_OK, "the quiet after that");
    expect_sentence(t, wanted, " after quiet");
  }
}

void registration(const rig::team& t, const place& p, const rig::device_array<unsigned char>& foreign) {
  const xio_status_t unregistered = t.route == "direct" ? XIO_OK : XIO_ERR_NOT_REGISTERED;
  const rig::device_array<int> statuses(3);
  for (const bool registered : {false, true}) {
    if (registered) MUST(xio_mem_register(t.world(), foreign.data(), 2 * k_foreign));
    rig::team::write(p.sym, std::vector<unsigned char>(k_bytes, rig::k_poison));
    t.barrier();
    RUN(use_foreign, 1, 1, t.ctx, p, t.right, statuses.data(), statuses.data() + 1, statuses.data() + 2);
    t.barrier();
    const xio_status_t wanted = registered ? XIO_OK : unregistered;
    const std::vector<int> got = statuses.get();
    rig::expect_status(got[0], wanted, "put of unregistered memory");
    rig::expect_status(got[1], wanted, "get into unregistered memory");
    rig::expect_status(got[2], wanted, "quiet after it");
    if (registered) MUST(xio_mem_unregister(t.world(), foreign.data()));
    std::vector<unsigned char> image(k_bytes, rig::k_poison);
    for (size_t i = 0; i < k_foreign && wanted == XIO_OK; ++i) image[i] = static_cast<unsigned char>(i + 1);
    rig::expect_same(rig::team::read(p.sym, k_bytes), image, "put from foreign memory");
  }
  t.barrier();
}

}  // namespace

int main() {
  const rig::team t;
  place p{};
  p.sym = t.symmetric<unsigned char>(k_bytes);
  p.local = t.symmetric<unsigned char>(k_bytes);
  p.word = t.symmetric<uint64_t>(1);
  std::vector<unsigned char> start(2 * k_foreign);
  for (size_t i = 0; i < start.size(); ++i) start[i] = static_cast<unsigned char>(i + 1);
  const rig::device_array<unsigned char> foreign(start);
  p.foreign = foreign.data();
  p.n = t.n;
  // Where the heap ends: as the device sees it.
  xio::dev::world_view w;
  xio::dev::ctx_view c;
  MUST(hipMemcpy(&c, t.ctx.view, sizeof c, hipMemcpyDeviceToHost));
  MUST(hipMemcpy(&w, c.world, sizeof w, hipMemcpyDeviceToHost));
  p.endless = ~size_t{0};
  p.heap_left = static_cast<size_t>(w.heap + w.heap_bytes - p.sym);

  const std::vector<unsigned char> poison(k_bytes, rig::k_poison);
  rig::team::write(p.sym, poison);
  rig::team::write(p.word, std::vector<uint64_t>{4711});
  t.barrier();
  const int bad = rig::result_of(mistakes, 1, 1, t.ctx, p), bad_early = rig::result_of(early_mistakes, 1, 1, t.ctx, p),
            bad_together = rig::result_of(mistakes_together, 1, 96, t.ctx, p);
  t.barrier();
  rig::expect(bad == 0, "mistake %d had another result", bad);
  rig::expect(bad_early == 0, "early mistake %d had another result", bad_early);
  rig::expect(bad_together == 0, "mistake %d of a workgroup had another result", bad_together);
  rig::expect_same(rig::team::read(p.sym, k_bytes), poison, "memory after mistakes");
  rig::expect(rig::team::read(p.word, 1)[0] == 4711, "a word changed by a mistake");
#if defined(XIO_PLATFORM_HOST)
  const int called = rig::result_of(call_host, 1, 64, t.world());
  rig::expect(called == XIO_ERR_STATE, "a call of the host in a kernel is %d", called);
#endif
  sentences(t, p);
  registration(t, p, foreign);
  return rig::verdict("args", t);
}
