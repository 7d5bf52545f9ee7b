// SPDX-License-Identifier: MIT
// LDS, GLOBAL, FLAT, private memory and buffers, atomics among them; and what refuses an access.
#include "amdgpu/opcodes.hpp"

namespace {

using namespace amdgpu::test;
using amdgpu::fault;
using amdgpu::lanes;

struct memory : testing::Test {
  // 64 KiB that the GPU sees, filled with bytes that tell where they are.
  memory() : bytes(65536) {
    for (unsigned i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    m.visible.list(bytes.data(), bytes.size());
  }
  u64 at(u64 offset) const { return reinterpret_cast<u64>(bytes.data()) + offset; }
  u32 byte(u64 i) const { return static_cast<std::uint8_t>(i * 7 + i / 256); }
  u32 word(u64 i) const { return byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24; }
  u32 now(u64 i) const {
    u32 x;
    std::memcpy(&x, &bytes[i], 4);
    return x;
  }
  void give_scratch(unsigned per_lane) {
    scratch.assign(per_lane * lanes / 4 + 64, 0);
    m.w.scratch = reinterpret_cast<u64>(scratch.data());
    m.w.scratch_bytes = u64{per_lane} * lanes;
    m.w.set64(amdgpu::reg::flat_scratch, m.w.scratch);
    m.s(40) = static_cast<u32>(m.w.scratch);
    m.s(41) = static_cast<u32>(m.w.scratch >> 32) | 1u << 31;
    m.s(42) = ~0u;
    m.s(43) = 1u << 23 | 3u << 21;
  }

  machine m;
  std::vector<std::uint8_t> bytes;
  std::vector<u32> scratch;
};

TEST_F(memory, global_loads_of_each_width) {
  m.load(
      "global_load_ubyte v10, v[0:1], off\n global_load_sbyte v11, v[0:1], off offset:1\n global_load_ushort v12, "
      "v[0:1], off offset:2\n"
      "global_load_sshort v13, v[0:1], off offset:-2\n global_load_dword v14, v[0:1], off offset:4\n "
      "global_load_dwordx2 v[16:17], v[0:1], off offset:8\n"
      "global_load_dwordx3 v[20:22], v[0:1], off offset:4\n global_load_dwordx4 v[24:27], v2, s[4:5] offset:16\n"
      "global_load_short_d16 v28, v[0:1], off\n global_load_short_d16_hi v29, v[0:1], off\n global_load_dword a3, v2, "
      "s[4:5]\n s_waitcnt vmcnt(0)");
  m.w.set64(4, at(0));
  for (u64 exec : exec_patterns) {
    m.exec(exec);
    for (unsigned l = 0; l < lanes; ++l) {
      m.set_v64(0, l, at(256 + 36 * l)), m.v(2, l) = 256 + 36 * l;
      for (unsigned n = 10; n < 30; ++n) m.v(n, l) = machine::poison;
      m.v(259, l) = machine::poison;
    }
    ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
    for (unsigned l = 0; l < lanes; ++l) {
      const u64 i = 256 + 36 * l;
      const auto is = [&](unsigned n, u32 expected) {
        EXPECT_EQ(m.v(n, l), exec >> l & 1 ? expected : machine::poison) << "v" << n << " lane " << l;
      };
      is(10, byte(i));
      is(11, static_cast<u32>(static_cast<signed char>(byte(i + 1))));
      is(12, word(i + 2) & 0xffff);
      is(13, static_cast<u32>(static_cast<short>(word(i - 2))));
      is(14, word(i + 4));
      is(16, word(i + 8)), is(17, word(i + 12));
      is(20, word(i + 4)), is(21, word(i + 8)), is(22, word(i + 12));
      for (unsigned k = 0; k < 4; ++k) is(24 + k, word(i + 16 + 4 * k));
      is(28, (machine::poison & 0xffff0000) | (word(i) & 0xffff));
      is(29, (machine::poison & 0xffff) | word(i) << 16);
      is(259, word(i));
    }
  }
}

// LLVM takes a load from one address for uniform (AMDGPUTargetTransformInfo, isSourceOfDivergence).
TEST_F(memory, lanes_that_load_from_one_address_get_one_value) {
  m.load("global_load_dwordx2 v[10:11], v[0:1], off glc\n global_load_dword v12, v2, s[4:5] glc\n s_waitcnt vmcnt(0)");
  m.w.set64(4, at(0));
  for (unsigned l = 0; l < lanes; ++l) m.set_v64(0, l, at(256)), m.v(2, l) = 256;
  auto* const word = reinterpret_cast<u64*>(bytes.data() + 256);
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    for (u64 i = 0; !ends; ++i) __atomic_store_n(word, i << 32 | i, __ATOMIC_RELAXED);
  });
  unsigned differ = 0;
  for (unsigned turn = 0; turn < 2000; ++turn) {
    m.go();
    for (unsigned l = 1; l < lanes; ++l) differ += m.v64(10, l) != m.v64(10, 0) || m.v(12, l) != m.v(12, 0);
  }
  ends = true;
  writer.join();
  EXPECT_EQ(differ, 0u);
}

TEST_F(memory, global_stores_of_each_width) {
  m.load(
      "global_store_byte v[0:1], v10, off\n global_store_short v[0:1], v10, off offset:2\n global_store_dword v[0:1], "
      "v11, off offset:4\n"
      "global_store_dwordx2 v2, v[12:13], s[4:5] offset:8\n global_store_dwordx4 v2, v[12:15], s[4:5] offset:16\n"
      "global_store_byte_d16_hi v[0:1], v10, off offset:1\n global_store_dwordx3 v[0:1], v[12:14], off offset:32");
  m.w.set64(4, at(0));
  for (u64 exec : exec_patterns) {
    for (unsigned i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(byte(i));
    m.exec(exec);
    for (unsigned l = 0; l < lanes; ++l) {
      m.set_v64(0, l, at(64 * l)), m.v(2, l) = 64 * l;
      for (unsigned n = 10; n < 16; ++n) m.v(n, l) = n * 0x01010101 + l;
    }
    ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
    for (unsigned l = 0; l < lanes; ++l) {
      const u64 i = 64 * l;
      const bool on = exec >> l & 1;
      const auto is = [&](u64 offset, u32 expected) {
        EXPECT_EQ(now(i + offset), on ? expected : word(i + offset)) << offset << " lane " << l;
      };
      const auto reg = [&](unsigned n) { return n * 0x01010101u + l; };
      is(0, (reg(10) & 0xff) | (reg(10) >> 16 & 0xff) << 8 | (reg(10) & 0xffff) << 16);
      is(4, reg(11));
      is(8, reg(12)), is(12, reg(13));
      for (unsigned k = 0; k < 4; ++k) is(16 + 4 * k, reg(12 + k));
      is(32, reg(12)), is(36, reg(13)), is(40, reg(14));
      EXPECT_EQ(now(i + 44), word(i + 44));
    }
  }
}

struct atomic {
  const char* name;
  std::function<u64(u64, u64, bool)> f;  // new value of old and data; wide
};

u64 cut(u64 x, bool wide) { return wide ? x : static_cast<u32>(x); }
i64 sign(u64 x, bool wide) { return wide ? static_cast<i64>(x) : static_cast<i32>(x); }

const atomic atomics[] = {
    {"swap", [](u64, u64 d, bool) { return d; }},
    {"add", [](u64 o, u64 d, bool w) { return cut(o + d, w); }},
    {"sub", [](u64 o, u64 d, bool w) { return cut(o - d, w); }},
    {"smin", [](u64 o, u64 d, bool w) { return sign(o, w) < sign(d, w) ? o : d; }},
    {"umin", [](u64 o, u64 d, bool) { return std::min(o, d); }},
    {"smax", [](u64 o, u64 d, bool w) { return sign(o, w) > sign(d, w) ? o : d; }},
    {"umax", [](u64 o, u64 d, bool) { return std::max(o, d); }},
    {"and", [](u64 o, u64 d, bool) { return o & d; }},
    {"or", [](u64 o, u64 d, bool) { return o | d; }},
    {"xor", [](u64 o, u64 d, bool) { return o ^ d; }},
    {"inc", [](u64 o, u64 d, bool) { return o >= d ? 0 : o + 1; }},
    {"dec", [](u64 o, u64 d, bool) { return o == 0 || o > d ? d : o - 1; }},
};

TEST_F(memory, atomics_with_and_without_return) {
  for (const atomic& k : atomics)
    for (const bool wide : {false, true})
      for (const char* const kind : {"global", "flat"})
        for (const bool returns : {false, true}) {
          const bool flat = kind[0] == 'f';
          const std::string data = wide ? "v[4:5]" : "v4", out = wide ? "v[8:9], " : "v8, ";
          m.load(std::string(kind) + "_atomic_" + k.name + (wide ? "_x2 " : " ") + (returns ? out : "") + "v[0:1], " +
                 data + (flat ? "" : ", off") + (returns ? " glc" : ""));
          for (u64 exec : exec_patterns) {
            m.exec(exec);
            for (unsigned l = 0; l < lanes; ++l) {
              const u64 old = edge64(l);
              std::memcpy(&bytes[16 * l], &old, 8);
              m.set_v64(0, l, at(16 * l)), m.set_v64(4, l, edge64(second(l, 3))), m.set_v64(8, l, machine::poison);
            }
            ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
            for (unsigned l = 0; l < lanes; ++l) {
              const bool on = exec >> l & 1;
              const u64 was = edge64(l), old = cut(was, wide), d = cut(edge64(second(l, 3)), wide);
              u64 got;
              std::memcpy(&got, &bytes[16 * l], 8);
              u64 expected = on ? k.f(old, d, wide) : old;
              if (!wide) expected |= was >> 32 << 32;
              ASSERT_EQ(got, expected) << k.name << wide << kind << ' ' << l;
              ASSERT_EQ(wide ? m.v64(8, l) : m.v(8, l), on && returns ? old : machine::poison)
                  << k.name << wide << kind << ' ' << l;
            }
          }
        }
}

TEST_F(memory, compare_and_swap) {
  for (unsigned l = 0; l < lanes; ++l) {
    const u32 old = l * 3;
    std::memcpy(&bytes[4 * l], &old, 4);
    m.set_v64(0, l, at(4 * l));
    m.v(4, l) = 1000 + l;                // new
    m.v(5, l) = l % 2 ? l * 3 : 999999;  // compared with
  }
  ASSERT_FALSE(m.run("global_atomic_cmpswap v8, v[0:1], v[4:5], off glc"));
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_EQ(m.v(8, l), l * 3);
    EXPECT_EQ(now(4 * l), l % 2 ? 1000 + l : l * 3);
  }
  // All lanes at one address, one after the other.
  std::memset(bytes.data(), 0, 8);
  for (unsigned l = 0; l < lanes; ++l) m.set_v64(0, l, at(0)), m.set_v64(4, l, 1);
  ASSERT_FALSE(m.run("global_atomic_add_x2 v[8:9], v[0:1], v[4:5], off glc"));
  for (unsigned l = 0; l < lanes; ++l) EXPECT_EQ(m.v64(8, l), l);
  EXPECT_EQ(now(0), lanes);
}

TEST_F(memory, float_atomics) {
  const double d = 1.5;
  const float f = 2.5f;
  std::memcpy(&bytes[0], &d, 8);
  std::memcpy(&bytes[8], &f, 4);
  m.exec(7);
  for (unsigned l = 0; l < 3; ++l) {
    m.set_v64(0, l, at(0)), m.set_v64(2, l, at(8));
    m.set_v64(4, l, std::bit_cast<u64>(0.25)), m.v(6, l) = std::bit_cast<u32>(0.5f);
  }
  ASSERT_FALSE(m.run("global_atomic_add_f64 v[0:1], v[4:5], off\n global_atomic_add_f32 v[2:3], v6, off"));
  EXPECT_EQ(now(8), std::bit_cast<u32>(4.0f));
  double got;
  std::memcpy(&got, &bytes[0], 8);
  EXPECT_EQ(got, 2.25);
}

TEST_F(memory, lds) {
  m.shared.lds.assign(8192, 0);
  m.load(
      "ds_write_b32 v0, v1\n ds_write_b64 v0, v[2:3] offset:1024\n ds_write_b8 v5, v1 offset:4000\n"
      "ds_write_b128 v6, v[8:11] offset:5120\n ds_read_b32 v20, v0\n ds_read_b64 v[22:23], v0 offset:1024\n"
      "ds_read_i8 v26, v5 offset:4000\n ds_read_b128 v[28:31], v6 offset:5120\n ds_read_u16_d16_hi v34, v0\n s_waitcnt "
      "lgkmcnt(0)");
  for (u64 exec : exec_patterns) {
    m.exec(exec);
    for (unsigned l = 0; l < lanes; ++l) {
      m.v(0, l) = 8 * l, m.v(1, l) = 0x8f000080 + l, m.v(2, l) = l * 77, m.v(3, l) = l * 78;
      m.v(5, l) = l, m.v(6, l) = 16 * l;
      for (unsigned k = 0; k < 4; ++k) m.v(8 + k, l) = l * 10 + k;
      for (unsigned n = 20; n < 35; ++n) m.v(n, l) = machine::poison;
    }
    ASSERT_FALSE(m.go()) << m.shared.failed.sentence();
    for (unsigned l = 0; l < lanes; ++l) {
      const bool on = exec >> l & 1;
      const auto is = [&](unsigned n, u32 expected) {
        EXPECT_EQ(m.v(n, l), on ? expected : machine::poison) << "v" << n << " lane " << l;
      };
      is(22, l * 77), is(23, l * 78);
      is(26, static_cast<u32>(static_cast<signed char>(0x80 + l)));
      for (unsigned k = 0; k < 4; ++k) is(28 + k, l * 10 + k);
      is(20, 0x8f000080 + l);
      is(34, (machine::poison & 0xffff) | ((0x8f000080 + l) & 0xffff) << 16);
    }
  }
}

TEST_F(memory, lds_two_at_once) {
  m.shared.lds.assign(65536, 0);
  for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = 32 * l, m.v(2, l) = l + 1, m.v(3, l) = l + 1000;
  ASSERT_FALSE(m.run(
      "ds_write2_b32 v0, v2, v3 offset0:2 offset1:5\n ds_read_b32 v8, v0 offset:8\n ds_read_b32 v9, v0 offset:20\n"
      "ds_read2_b32 v[10:11], v0 offset0:5 offset1:2\n ds_write2st64_b64 v0, v[2:3], v[8:9] offset0:20 offset1:40\n"
      "ds_read_b64 v[12:13], v0 offset:10240\n ds_read2st64_b64 v[16:19], v0 offset0:40 offset1:20\n s_waitcnt "
      "lgkmcnt(0)"))
      << m.shared.failed.sentence();
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_PAIRS((m.v(8, l), l + 1), (m.v(9, l), l + 1000), (m.v(10, l), l + 1000), (m.v(11, l), l + 1));
    const u64 q = (l + 1) | u64{l + 1000} << 32;
    EXPECT_PAIRS((m.v64(12, l), q), (m.v64(16, l), q), (m.v64(18, l), q));
  }
}

TEST_F(memory, lds_atomics) {
  m.shared.lds.assign(1024, 0);
  for (unsigned l = 0; l < lanes; ++l)
    m.v(0, l) = 0, m.v(1, l) = l, m.v(2, l) = 64 + l % 2 * 4, m.v(3, l) = l + 1, m.v(4, l) = 0;
  ASSERT_FALSE(
      m.run("ds_add_rtn_u32 v8, v0, v1\n ds_max_u32 v0, v1 offset:8\n ds_cmpst_rtn_b32 v9, v2, v4, v3\n ds_add_u64 v0, "
            "v[4:5] offset:128\n"
            "ds_or_b32 v0, v1 offset:12\n ds_wrxchg_rtn_b32 v10, v0, v1 offset:16\n s_waitcnt lgkmcnt(0)"));
  const auto* const lds = reinterpret_cast<const u32*>(m.shared.lds.data());
  EXPECT_PAIRS((lds[0], 64u * 63 / 2), (lds[2], 63u), (lds[3], 63u), (lds[4], 63u));
  EXPECT_EQ(lds[16], 1u);  // the first even lane, and no later one
  EXPECT_EQ(lds[17], 2u);
  u32 sum = 0;
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_PAIRS((m.v(8, l), sum), (m.v(9, l), l < 2 ? 0 : 1 + l % 2), (m.v(10, l), l ? l - 1 : 0));
    sum += l;
  }
}

TEST_F(memory, lds_out_of_bounds_is_a_fault) {
  m.shared.lds.assign(256, 0);
  for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = 4 * l + (l == 40 ? 100 : 0);
  const fault& f = m.run("ds_write_b32 v0, v1");
  EXPECT_PAIRS((f.what, fault::kind::lds), (f.lane, 40), (f.address, 260u));
  EXPECT_NE(f.sentence().find("outside of the workgroup's LDS"), std::string::npos) << f.sentence();
}

// Dword k of lane l lies at 256 * k + 4 * l, for every instruction.
TEST_F(memory, private_memory) {
  give_scratch(256);
  m.s(32) = 64 * 16, m.s(33) = 0;
  for (u64 exec : exec_patterns) {
    std::fill(scratch.begin(), scratch.end(), 0x11111111);
    m.exec(exec);
    for (unsigned l = 0; l < lanes; ++l) {
      m.v(1, l) = 5000 + l, m.v(2, l) = 6000 + l, m.v(3, l) = 7000 + l;
      m.v(4, l) = 4 * (l % 8);
      m.set_v64(6, l, (u64{2} << 48) | (32 + 4 * (l % 8)));
      for (unsigned n = 10; n < 20; ++n) m.v(n, l) = machine::poison;
    }
    ASSERT_FALSE(
        m.run("buffer_store_dword v1, off, s[40:43], s32 offset:4\n buffer_store_dword v2, v4, s[40:43], s32 offen "
              "offset:16\n s_waitcnt vmcnt(0)\n"
              "flat_load_dword v10, v[6:7]\n scratch_load_dword v11, off, s33 offset:20\n buffer_load_dword v12, off, "
              "s[40:43], 0 offset:20\n"
              "flat_store_dwordx2 v[6:7], v[2:3] offset:64\n scratch_load_dword v14, v4, off offset:100\n "
              "buffer_load_ubyte v15, off, s[40:43], s32 offset:4\n"
              "buffer_store_short v3, off, s[40:43], 0 offset:202\n buffer_load_dword v16, off, s[40:43], 0 "
              "offset:200\n s_waitcnt vmcnt(0)"))
        << m.shared.failed.sentence();
    for (unsigned l = 0; l < lanes; ++l) {
      const bool on = exec >> l & 1;
      const auto is = [&](unsigned n, u32 expected) {
        EXPECT_EQ(m.v(n, l), on ? expected : machine::poison) << "v" << n << " lane " << l;
      };
      is(10, 6000 + l), is(11, 5000 + l), is(12, 5000 + l);
      is(14, 7000 + l);
      is(15, (5000 + l) & 255);
      is(16, 0x1111 | (7000 + l) << 16);
      EXPECT_EQ(scratch[64 * 5 + l], on ? 5000 + l : 0x11111111) << l;
      EXPECT_EQ(scratch[64 * (8 + l % 8) + l], on ? 6000 + l : 0x11111111) << l;
    }
  }
}

TEST_F(memory, flat_reaches_all_three) {
  give_scratch(64);
  m.shared.lds.assign(1024, 0);
  for (unsigned l = 0; l < lanes; ++l) {
    m.set_v64(0, l, l % 3 == 0 ? at(8 * l) : l % 3 == 1 ? (u64{1} << 48) + 8 * l : (u64{2} << 48) + 8);
    m.v(2, l) = 100 + l, m.v(3, l) = 200 + l, m.v(6, l) = 1;
  }
  ASSERT_FALSE(
      m.run("flat_store_dwordx2 v[0:1], v[2:3]\n s_waitcnt vmcnt(0) lgkmcnt(0)\n flat_load_dwordx2 v[8:9], v[0:1]"));
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_EQ(m.v(8, l), 100 + l) << l;
    EXPECT_EQ(m.v(9, l), 200 + l) << l;
  }
  EXPECT_EQ(now(24), 103u);
  EXPECT_EQ(scratch[2 * 64 + 2], 102u);
  u64 not_private = 0;  // atomics on private memory are a fault
  for (unsigned l = 0; l < lanes; ++l) not_private |= u64{l % 3 != 2} << l;
  m.exec(not_private);
  for (unsigned l = 0; l < lanes; ++l) m.v(10, l) = machine::poison;
  ASSERT_FALSE(m.run("flat_atomic_add v10, v[0:1], v6 glc")) << m.shared.failed.sentence();
  for (unsigned l = 0; l < lanes; ++l) EXPECT_EQ(m.v(10, l), not_private >> l & 1 ? 100 + l : machine::poison);
  EXPECT_EQ(now(24), 104u);
  m.exec(~u64{0});
  EXPECT_EQ(m.run("flat_atomic_add v[0:1], v6").what, fault::kind::memory);
}

TEST_F(memory, linear_buffers_have_bounds) {
  m.s(8) = static_cast<u32>(at(0)), m.s(9) = static_cast<u32>(at(0) >> 32), m.s(10) = 128, m.s(11) = 0x00027000;
  for (unsigned l = 0; l < lanes; ++l) m.v(0, l) = 4 * l, m.v(4, l) = machine::poison;
  ASSERT_FALSE(
      m.run("buffer_load_dword v4, v0, s[8:11], 0 offen\n buffer_store_dword v0, v0, s[8:11], 0 offen offset:4"));
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_EQ(m.v(4, l), l < 32 ? word(4 * l) : 0) << l;
    EXPECT_EQ(now(4 * l + 4), l < 31 ? 4 * l : word(4 * l + 4)) << l;
  }
}

// Memory that the GPU sees at an address of its own, beside memory that it sees where the process does.
TEST_F(memory, addresses_of_the_gpus_own) {
  const u64 own = 0x7f0000000000;
  std::vector<u32> first(1024, 5), next(1024, 6);
  m.visible.list_at(own, first.data(), 4096);
  m.visible.list_at(own + 4096, next.data(), 4096);
  for (unsigned l = 0; l < lanes; ++l)
    m.set_v64(0, l, l % 2 ? own + 4 * l : at(4 * l)), m.v(2, l) = 100 + l, m.v(3, l) = 1;
  m.w.set64(2, own + 256);
  first[64] = 77;
  ASSERT_FALSE(m.run(
      "global_store_dword v[0:1], v2, off\n global_atomic_add v4, v[0:1], v3, off glc\n s_load_dword s4, s[2:3], 0x0\n"
      "global_load_dword v5, v[0:1], off\n s_waitcnt vmcnt(0) lgkmcnt(0)"))
      << m.shared.failed.sentence();
  EXPECT_EQ(m.s(4), 77u);
  for (unsigned l = 0; l < lanes; ++l) {
    EXPECT_PAIRS((m.v(4, l), 100 + l), (m.v(5, l), 101 + l), (l % 2 ? first[l] : now(4 * l), 101 + l),
                 (l % 2 ? now(4 * l) : first[l], l % 2 ? word(4 * l) : 5u));
  }
  // Neighbours for the GPU need not be neighbours in the process.
  m.exec(1);
  m.set_v64(0, 0, own + 4092);
  const fault& f = m.run("global_load_dwordx2 v[6:7], v[0:1], off");
  EXPECT_PAIRS((f.what, fault::kind::memory), (f.address, own + 4096));
}

TEST_F(memory, accesses_are_refused_before_they_are_made) {
  for (unsigned l = 0; l < lanes; ++l) m.set_v64(0, l, at(4 * l)), m.v(2, l) = 1;
  m.set_v64(0, 17, at(65534));
  {
    const fault& f = m.run("global_load_dword v4, v[0:1], off");
    EXPECT_PAIRS((f.what, fault::kind::memory), (f.lane, 17), (f.address, at(65536)));
    EXPECT_FALSE(f.write);
  }
  m.set_v64(0, 17, at(41));
  {
    const fault& f = m.run("global_atomic_add v[0:1], v2, off");
    EXPECT_PAIRS((f.what, fault::kind::alignment), (f.lane, 17));
  }
  m.visible.drop(bytes.data());
  m.visible.list(bytes.data(), bytes.size(), false);
  {
    ASSERT_FALSE(m.run("global_load_dword v4, v[0:1], off")) << "reading what is read only";
    const fault& f = m.run("global_store_dword v[0:1], v2, off");
    EXPECT_EQ(f.what, fault::kind::memory);
    EXPECT_TRUE(f.write);
    EXPECT_NE(f.sentence().find("reading only"), std::string::npos) << f.sentence();
  }
  m.exec(0);
  m.visible.drop(bytes.data());
  EXPECT_FALSE(m.run("global_store_dword v[0:1], v2, off")) << "no lane accesses anything";
}

TEST_F(memory, cache_instructions_are_counted) {
  ASSERT_FALSE(m.run("buffer_wbl2\n s_waitcnt vmcnt(0)\n buffer_invl2\n buffer_wbinvl1_vol"));
  EXPECT_PAIRS((m.shared.counted.of(amdgpu::count::writeback), 1u),
               (m.shared.counted.of(amdgpu::count::invalidate), 2u), (m.shared.counted.of(amdgpu::count::wait), 1u));
}

}  // namespace
