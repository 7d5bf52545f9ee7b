// SPDX-License-Identifier: MIT
// Whole kernels, compiled by hipcc, interpreted, and compared with what the host computes. kernels.sh compiles them at
// each level of optimization and names the code object in XIO_AMDGPU_CODE.
#include <cmath>
#include <numeric>
#include <random>

#include "../gtest.hpp"
#include "amdgpu/code_object.hpp"

namespace {

using namespace amdgpu;
using namespace amdgpu::test;
using u64 = std::uint64_t;

struct kernels : testing::Test {
  void SetUp() override {
    const char* const path = std::getenv("XIO_AMDGPU_CODE");
    ASSERT_NE(path, nullptr) << "kernels.sh names the code object";
    code = std::make_unique<code_object>(code_object::read(path), visible);
  }

  // A buffer the GPU sees, with poison before and behind it.
  template <class T>
  struct buffer {
    std::vector<std::uint8_t> room;
    std::size_t count;
    static constexpr std::size_t guard = 256;
    buffer(kernels& test, std::size_t n) : room(n * sizeof(T) + 2 * guard, 0xa5), count(n) {
      test.visible.list(room.data() + guard, n * sizeof(T));
    }
    T* data() { return reinterpret_cast<T*>(room.data() + guard); }
    T& operator[](std::size_t i) { return data()[i]; }
    bool guarded() const {
      for (std::size_t i = 0; i < guard; ++i)
        if (room[i] != 0xa5 || room[room.size() - 1 - i] != 0xa5) return false;
      return true;
    }
  };

  launch of(const char* name, unsigned items, unsigned group) {
    launch l;
    const char* const named = std::getenv("XIO_AMDGPU_TARGET");
    l.target = target_of(named == nullptr ? "" : named);
    l.name = name;
    l.kernel_object = code->symbol(std::string(name) + ".kd");
    l.grid = {items, 1, 1};
    l.workgroup_size = {group, 1, 1};
    std::memcpy(&l.group_bytes, reinterpret_cast<void*>(l.kernel_object), 4);
    l.private_bytes = 16384;
    return l;
  }

  void expect_done(const outcome& o) {
    EXPECT_EQ(o.state, workgroup::state::finished) << o.what.sentence();
    EXPECT_GT(o.counted.instructions, 0u);
  }

  // Arguments of a kernel, buffers by their addresses.
  template <class T>
  static T* argument(buffer<T>& b) {
    return b.data();
  }
  template <class T>
  static T argument(T value) {
    return value;
  }
  template <class... All>
  static arguments with(All&... all) {
    arguments out;
    (out.add(argument(all)), ...);
    return out;
  }
  template <class... All>
  void run(const launch& how, All&&... all) {
    expect_done(run_kernel(visible, how, with(all...)));
  }

  buffers visible;
  std::unique_ptr<code_object> code;
};

TEST_F(kernels, vector_add) {
  constexpr int n = 1000;
  buffer<int> a(*this, n), b(*this, n), c(*this, n);
  for (int i = 0; i < n; ++i) a[i] = i * 7919, b[i] = i * i - 5;
  run(of("vector_add", 1024, 256), a, b, c, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], i * 7919 + i * i - 5) << i;
  EXPECT_TRUE(c.guarded());
}

// The grid ends within a workgroup: the lanes behind it do nothing.
TEST_F(kernels, partial_workgroup) {
  constexpr int n = 128, items = 101;
  buffer<int> a(*this, n), b(*this, n), c(*this, n);
  for (int i = 0; i < n; ++i) a[i] = i, b[i] = 1, c[i] = -1;
  run(of("vector_add", items, 128), a, b, c, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[i], i < items ? i + 1 : -1) << i;
}

// 37 lanes ring a register three times. Of a store by all of them one value arrives, and with late memory, of several
// that the wave has not waited for, the last.
TEST_F(kernels, doorbells_of_one_register) {
  if (!code->has("ring_one_register.kd")) GTEST_SKIP() << "this compiler has no XIO for this GPU";
  constexpr unsigned n = 37, times = 3;
  for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
    const auto arrived = [&](const char* name) {
      const auto page = make_pages(4096);
      rung_registers device;
      visible.list_registers(page.get(), 4096, device);
      launch l = of(name, n, n);
      l.adversary_seed = seed;
      run(l, page.get(), static_cast<int>(times));
      visible.drop(page.get());
      return device.values;
    };
    std::vector<u64> rung = arrived("ring_one_register"), expected;
    for (unsigned i = 0; i < times; ++i)
      for (unsigned lane = 0; lane < n; ++lane) expected.push_back(lane + 1000 * i);
    if (of("ring_one_register", n, n).target == target::gfx1100) {  // two waves
      std::sort(rung.begin(), rung.end());
      EXPECT_EQ(rung.size(), expected.size()) << "seed " << seed;
    }
    EXPECT_EQ(rung, expected) << "seed " << seed;
    EXPECT_LE(arrived("store_to_one_register").size(), 2 * times) << "seed " << seed;
  }
}

TEST_F(kernels, reduce_by_lds) {
  constexpr unsigned n = 5003;
  buffer<unsigned> in(*this, n);
  buffer<u64> sum(*this, 1);
  u64 expected = 0;
  for (unsigned i = 0; i < n; ++i) expected += in[i] = i * 2654435761u >> 20;
  sum[0] = 0;
  run(of("reduce_lds", 1024, 256), in, sum, n);
  EXPECT_EQ(sum[0], expected);
}

TEST_F(kernels, reduce_by_shuffle) {
  buffer<int> in(*this, 128), out(*this, 4);
  for (int i = 0; i < 128; ++i) in[i] = i * i - 3;
  run(of("reduce_shuffle", 128, 64), in, out);
  for (int g = 0; g < 2; ++g) {
    const int width = of("reduce_shuffle", 64, 64).target == target::gfx1100 ? 32 : 64;  // the first wave's
    EXPECT_EQ(out[2 * g], std::accumulate(&in[64 * g], &in[64 * g] + width, 0));
    int odd = 0;
    for (int i = 0; i < width; ++i) odd += in[i] & 1;
    EXPECT_EQ(out[2 * g + 1], odd);
  }
}

TEST_F(kernels, copies) {
  constexpr unsigned n = 4099;
  buffer<std::uint8_t> from(*this, n), to(*this, n);
  for (unsigned i = 0; i < n; ++i) from[i] = static_cast<std::uint8_t>(i * 31 + i / 256);
  run(of("copy_bytes", 512, 128), from, to, n);
  for (unsigned i = 0; i < n; ++i) ASSERT_EQ(to[i], static_cast<std::uint8_t>(i * 31 + i / 256));
  EXPECT_TRUE(to.guarded());
  buffer<std::uint32_t> wide_from(*this, 4 * 300), wide_to(*this, 4 * 300);
  for (unsigned i = 0; i < 1200; ++i) wide_from[i] = i * 2654435761u;
  run(of("copy_wide", 256, 64), wide_from, wide_to, 300u);
  for (unsigned i = 0; i < 1200; ++i) ASSERT_EQ(wide_to[i], i * 2654435761u);
  EXPECT_TRUE(wide_to.guarded());
}

TEST_F(kernels, recursion) {
  buffer<unsigned> out(*this, 64);
  run(of("recursion", 64, 64), out);
  const unsigned expected[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(out[i], expected[i % 12]) << i;
}

TEST_F(kernels, private_arrays) {
  buffer<unsigned> where(*this, 64), out(*this, 128);
  for (unsigned i = 0; i < 64; ++i) where[i] = i * 37 % 256;
  run(of("private_array", 64, 64), where, out);
  unsigned shared[64], own[64][16];
  for (unsigned t = 0; t < 64; ++t) {
    shared[t] = 1000 + t;
    for (unsigned i = 0; i < 16; ++i) own[t][i] = i * 3 + t;
  }
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned w = where[t];
    own[t][w & 15] += 100;
    if (w & 64) {
      own[t][w & 15] += 5;
    } else if (w & 128) {
      shared[63 - t] += 5;
    }
  }
  for (unsigned t = 0; t < 64; ++t) {
    unsigned sum = shared[t];
    for (unsigned i = 0; i < 16; ++i) sum = sum * 31 + own[t][i];
    EXPECT_EQ(out[t], sum) << t;
    EXPECT_EQ(out[64 + t], where[t] & 192 ? 7u : 12u) << t;
  }
}

TEST_F(kernels, atomics) {
  constexpr unsigned n = 256;
  buffer<unsigned> u(*this, 8);
  buffer<int> s(*this, 2);
  buffer<u64> q(*this, 2);
  buffer<float> f(*this, 1);
  buffer<double> d(*this, 1);
  for (unsigned i = 0; i < 8; ++i) u[i] = 0;
  u[3] = 1000, u[5] = ~0u, s[0] = -1000, s[1] = 1000, q[0] = 5, q[1] = 1, f[0] = 1, d[0] = 2;
  expect_done(run_kernel(visible, of("atomics", n, 128), with(u, s, q, f, d), 50));
  unsigned x = 0;
  for (unsigned t = 0; t < n; ++t) x ^= t;
  EXPECT_PAIRS((u[0], n * (n - 1) / 2), (u[1], 0u - n), (u[2], n - 1), (u[3], 0u), (u[4], ~0u), (u[5], 0xffffff00u),
               (u[6], x), (u[7], n % 11), (s[0], static_cast<int>(n) - 51), (s[1], -50),
               (q[0], 5 + u64{0x100000001} * n), (q[1], 1 + 3ull * n), (f[0], 1 + 0.5f * n), (d[0], 2 + 0.25 * n));
}

TEST_F(kernels, divisions) {
  buffer<unsigned> a(*this, 64), b(*this, 64), u(*this, 128);
  buffer<std::int64_t> la(*this, 64), lb(*this, 64), l(*this, 128);
  buffer<float> fa(*this, 64), fb(*this, 64), f(*this, 128);
  buffer<double> da(*this, 64), db(*this, 64), d(*this, 128);
  std::mt19937_64 random(7);
  for (unsigned i = 0; i < 64; ++i) {
    a[i] = static_cast<unsigned>(random()), b[i] = static_cast<unsigned>(random() >> (32 + random() % 31)) | 1;
    la[i] = static_cast<std::int64_t>(random() >> (i % 20)),
    lb[i] = static_cast<std::int64_t>(random()) >> (random() % 60) | 1;
    fa[i] = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(random())) * 1e-3);
    fb[i] = static_cast<float>(std::ldexp(static_cast<double>(random() | 1), static_cast<int>(random() % 60) - 90));
    da[i] = static_cast<double>(static_cast<std::int64_t>(random())) * 1e-5;
    db[i] = std::ldexp(static_cast<double>(random() | 1), static_cast<int>(random() % 600) - 300);
  }
  fa[0] = 0, fb[1] = INFINITY, fa[2] = 1e-38f, fb[2] = 3e-39f, fb[3] = 1e38f, fa[4] = 3e38f, fb[4] = 1e-38f;
  fa[5] = 1e-45f, fb[5] = 1, fa[6] = 1, fb[6] = 0, fa[7] = 1e-30f, fb[7] = 1e20f;
  da[0] = 0, db[1] = INFINITY, da[2] = 1e-308, db[2] = 3e-309, da[4] = 1e308, db[4] = 1e-300, da[5] = 5e-324, db[5] = 1;
  run(of("divisions", 64, 64), a, b, la, lb, fa, fb, da, db, u, l, f, d);
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_PAIRS((u[i], a[i] / b[i]), (u[64 + i], a[i] % b[i]));
    EXPECT_EQ(l[i], la[i] / lb[i]) << i << ' ' << la[i] << ' ' << lb[i];
    EXPECT_EQ(l[64 + i], la[i] % lb[i]) << i;
    EXPECT_EQ(std::bit_cast<unsigned>(f[i]), std::bit_cast<unsigned>(fa[i] / fb[i]))
        << i << ' ' << fa[i] << ' ' << fb[i];
    EXPECT_EQ(f[64 + i], std::sqrt(std::fabs(fa[i]))) << i << ' ' << fa[i];
    EXPECT_EQ(std::bit_cast<u64>(d[i]), std::bit_cast<u64>(da[i] / db[i])) << i << ' ' << da[i] << ' ' << db[i];
    EXPECT_EQ(d[64 + i], std::sqrt(std::fabs(da[i]))) << i;
  }
}

TEST_F(kernels, halves_and_bytes) {
  buffer<std::uint16_t> h(*this, 64), h_out(*this, 64);
  buffer<std::int8_t> c(*this, 64);
  buffer<std::int16_t> c_out(*this, 64);
  for (unsigned i = 0; i < 64; ++i)
    h[i] = static_cast<std::uint16_t>(i * 4099), c[i] = static_cast<std::int8_t>(i * 37);
  run(of("halves_and_bytes", 64, 64), h, c, h_out, c_out);
  for (unsigned i = 0; i < 64; ++i) {
    EXPECT_EQ(h_out[i], static_cast<std::uint16_t>(h[i] * 3 + h[i ^ 1] / 2)) << i;
    EXPECT_EQ(c_out[i], static_cast<std::int16_t>(c[i] * c[i ^ 1] - (c[i] >> 1))) << i;
  }
}

TEST_F(kernels, pointers_to_functions) {
  buffer<unsigned> which(*this, 64), out(*this, 64);
  for (unsigned i = 0; i < 64; ++i) which[i] = i * 7 % 11;
  run(of("pointers_to_functions", 64, 64), which, out);
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned w = which[i], by[3] = {i + w, i * w, i - w};
    EXPECT_EQ(out[i], by[w % 3]) << i;
  }
}

TEST_F(kernels, waves_take_turns) {
  buffer<unsigned> word(*this, 2);
  word[0] = word[1] = 0;
  run(of("ping", 128, 128), word);
  EXPECT_EQ(word[1], 2u);
}

// Within what the device's library promises: 2 units in the last place for these doubles, 1e-5 for floats.
TEST_F(kernels, mathematics) {
  buffer<double> x(*this, 64), y(*this, 256);
  buffer<float> f(*this, 256);
  for (unsigned i = 0; i < 64; ++i) x[i] = 0.01 + i * i * 0.013;
  run(of("mathematics", 64, 64), x, y, f);
  for (unsigned i = 0; i < 64; ++i) {
    const double a = x[i];
    const auto b = static_cast<double>(static_cast<float>(a));
    const double doubles[] = {std::sin(a), std::sin(a * 1e15), std::exp(-a) + std::log1p(a), std::pow(a, 2.5)};
    const double floats[] = {std::sin(static_cast<double>(static_cast<float>(b) * 1000)), std::exp(b),
                             std::pow(b, 1.75), std::log(b)};
    for (unsigned k = 0; k < 4; ++k) {
      EXPECT_NEAR(y[64 * k + i], doubles[k], 5e-16 * (1 + std::fabs(doubles[k]))) << k << " of " << a;
      EXPECT_NEAR(f[64 * k + i], floats[k], 1e-5 * (1 + std::fabs(floats[k]))) << k << " of " << a;
    }
  }
}

TEST_F(kernels, three_dimensions) {
  launch l = of("three_dimensions", 8, 4);
  l.grid = {8, 6, 4};
  l.workgroup_size = {4, 3, 2};
  buffer<unsigned> out(*this, 8 * 6 * 4);
  run(l, out);
  for (unsigned z = 0; z < 4; ++z)
    for (unsigned y = 0; y < 6; ++y)
      for (unsigned x = 0; x < 8; ++x) EXPECT_EQ(out[(z * 6 + y) * 8 + x], (x | y << 8 | z << 16));
}

// Workgroups run on several threads, which decode the same code at the same time.
TEST_F(kernels, threads_share_decoded_code) {
  const auto work = [&] {
    buffers own = visible;
    std::vector<unsigned> out(64);
    own.list(out.data(), 256);
    launch l = of("recursion", 64, 64);
    const outcome o = run_kernel(own, l, arguments().add(out.data()), 10);
    return o.state == workgroup::state::finished && out[11] == 89 && out[60] == 0;
  };
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { right += work(); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 4);
}

TEST_F(kernels, unmapped_memory_is_one_sentence) {
  constexpr int n = 64;
  buffer<int> a(*this, n), b(*this, n), c(*this, n);
  visible.drop(c.data());
  const outcome o = run_kernel(visible, of("vector_add", n, 64), with(a, b, c, n));
  EXPECT_PAIRS((o.state, workgroup::state::faulted), (o.what.what, fault::kind::memory), (o.what.kernel, "vector_add"),
               (o.what.lane, 0), (o.what.address, reinterpret_cast<u64>(c.data())));
  EXPECT_TRUE(o.what.write);
  EXPECT_NE(o.what.sentence().find("vector_add"), std::string::npos);
  EXPECT_NE(o.what.instruction.find("_store_"), std::string::npos) << o.what.sentence();
}

}  // namespace
