// SPDX-License-Identifier: MIT
// The host data path's ways in whole worlds, whose PEs are threads: what a world decides, the rings that a ctx gets for
// it, and that waits and completions go through them.
#include "config.h"

#include <fmt/format.h>

#include <filesystem>

#include "ctx/world.hpp"
#include "says.hpp"
#include "thread_channel.hpp"
#include "xio/xio_device.hpp"

namespace {

using xio::options;
using xio::world;
using xio::test::says;
using namespace xio::dev;

std::string in_worlds(const std::string& way, const std::function<void(int, world&, xio_ctx_t)>& body,
                      const std::function<void(int, options&)>& tune = {}, xio_status_t expected = XIO_OK) {
  std::string sentence;
  xio::test::run_pes(2, [&](int pe, std::unique_ptr<xio::bootstrap::channel> channel) {
    const xio_status_t status = xio::guard([&] {
      options o = options::defaults();
      o.heap_size = 1 << 20;
      o.timeout_ms = 10000;
      o.hdp = xio::option::parse_word<xio::option::hdp>(way, "a test");
      if (tune) tune(pe, o);
      world w(o, std::move(channel));
      xio_ctx_t ctx{};
      w.contexts().create(nullptr, &ctx);
      body(pe, w, ctx);
      w.members().barrier();
      w.contexts().destroy(ctx);
      w.finalize();
    });
    EXPECT_EQ(status, expected) << way << ", PE " << pe << ": " << xio::last_error();
    if (pe == 0 && status != XIO_OK) sentence = xio::last_error();
  });
  return sentence;
}

u64 flushes(const ctx_view& c) { return load<scope::agent, order::relaxed>(&c.flush_rings[0].state->issued); }

// Each PE signals the other, and waits for the other's.
void signal_each_other(int pe, world& w, xio_ctx_t ctx) {
  void* block = nullptr;
  w.heap().allocate({"test", 1, 128, 64, true}, &block);
  auto* words = static_cast<uint64_t*>(block);
  w.members().barrier();
  uint64_t value = 40 + static_cast<uint64_t>(pe);
  EXPECT_PAIRS((xio_put_signal(ctx, words + 8, &value, 8, words, 1, XIO_SIGNAL_SET, 1 - pe), XIO_OK),
               (xio_signal_wait_until(ctx, words, XIO_CMP_EQ, 1), XIO_OK), (words[8], 41 - static_cast<uint64_t>(pe)));
  w.members().barrier();
  w.heap().release(block);
}

TEST(hdp_world, has_nothing_to_flush_on_the_host) {
  for (const char* way : {"auto", "none"})
    in_worlds(way, [](int pe, world& w, xio_ctx_t ctx) {
      const ctx_view& c = ctx_of(ctx);
      EXPECT_PAIRS((c.world->hdp.way, hdp_way::none), (c.flush_ring_count, 0u), (c.ring_count, 0u));
      signal_each_other(pe, w, ctx);
    });
}

TEST(hdp_world, stores_to_a_stand_in_for_the_register) {
  in_worlds("device", [](int pe, world& w, xio_ctx_t ctx) {
    u32* flush = ctx_of(ctx).world->hdp.flush;
    ASSERT_NE(flush, nullptr);
    EXPECT_EQ(*flush, 0u);
    signal_each_other(pe, w, ctx);
    EXPECT_EQ(*flush, 1u);
    EXPECT_EQ(ctx_of(ctx).flush_ring_count, 0u);
  });
}

TEST(hdp_world, asks_its_thread) {
  for (const char* way : {"host", "readback"})
    in_worlds(way, [](int pe, world& w, xio_ctx_t ctx) {
      world_view& view = *ctx_of(ctx).world;
      signal_each_other(pe, w, ctx);
      const u64 before = view.hdp_numbers;
      EXPECT_GE(before, 1u);
      EXPECT_PAIRS((xio_hdp_flush(ctx), XIO_OK), (view.hdp_numbers, before + 1),
                   ((load<scope::system, order::acquire>(view.hdp.done)), before + 1));
    });
}

#if defined(XIO_ENABLE_MODEL)

TEST(hdp_world, has_a_ring_to_itself_for_an_engine) {
  for (const char* way : {"sdma", "rdma-read"})
    in_worlds(way, [&](int pe, world& w, xio_ctx_t ctx) {
      const ctx_view& c = ctx_of(ctx);
      ASSERT_EQ(c.flush_ring_count, 1u) << way;
      EXPECT_EQ(c.ring_count, 0u) << "every op is loads and stores";
      EXPECT_EQ(c.flush_rings[0].kind == ring_kind::sdma, std::string(way) == "sdma");
      const u64 before = flushes(c);
      EXPECT_EQ(xio_hdp_flush(ctx), XIO_OK);
      EXPECT_EQ(flushes(c), before + 1);
      signal_each_other(pe, w, ctx);
      EXPECT_GE(flushes(c), before + 2);
      EXPECT_EQ(c.flush_rings[0].state->failed, 0u);
      // Nothing of it counts as an op of the user's.
      for (const xio_route_t route : {XIO_ROUTE_RDMA, XIO_ROUTE_SDMA})
        EXPECT_EQ(w.contexts().stats(ctx, route).ops, 0u);
    });
}

// A drive writes past the NICs: behind a NIC's read it still gets a flush of its own.
TEST(hdp_world, flushes_after_reads_of_a_drive) {
  for (const char* way : {"device", "rdma-read"})
    in_worlds(way, [&](int pe, world& w, xio_ctx_t ctx) {
      const std::string file = std::filesystem::temp_directory_path() / fmt::format("xio_hdp_{}_{}", getpid(), pe);
      { std::ofstream(file) << std::string(65536, 'd'); }
      const xio_storage_t s = w.open_storage(("file:" + file).c_str(), nullptr);
      void* block = nullptr;
      w.heap().allocate({"test", 1, 4096, 4096, true}, &block);
      u32* flush = ctx_of(ctx).world->hdp.flush;
      const auto flushed = [&] { return exchange<scope::system, order::relaxed>(flush, 0u) == 1; };
      flushed();
      EXPECT_EQ(xio_read(ctx, block, s, 0, 4096), XIO_OK);
      EXPECT_EQ(static_cast<const char*>(block)[4095], 'd');
      EXPECT_TRUE(flushed()) << way;
      EXPECT_EQ(xio_write(ctx, block, s, 0, 4096), XIO_OK);
      EXPECT_FALSE(flushed()) << "nothing was read";
      const xio_req_t request = xio_read_nbi(ctx, block, s, 4096, 4096);
      EXPECT_FALSE(flushed()) << "nothing has come";
      EXPECT_EQ(xio_wait(ctx, request), XIO_OK);
      EXPECT_TRUE(flushed()) << way;
      xio_read_nbi(ctx, block, s, 4096, 4096);
      EXPECT_EQ(xio_quiet(ctx), XIO_OK);
      EXPECT_TRUE(flushed()) << way;
      w.members().barrier();
      w.heap().release(block);
      w.storages().close(s);
      std::filesystem::remove(file);
    });
}

// Where entries are numbered by packets, and where one entry is several slots.
TEST(hdp_world, reads_back_by_every_family) {
  for (const char* family : {"mlx5", "mlx5_cq", "mlx5_nodbr", "bnxt", "ionic", "ionic_v1", "ernic", "proxy"})
    in_worlds(
        "rdma-read",
        [&](int pe, world& w, xio_ctx_t ctx) {
          for (int i = 0; i < 100; ++i) ASSERT_EQ(xio_hdp_flush(ctx), XIO_OK) << family << ' ' << i;
          signal_each_other(pe, w, ctx);
        },
        [&](int, options& o) {
          o.nic_family = xio::option::parse_word<xio::option::nic_family>(family, "a test");
          o.ring_depth = 16;
        });
}

TEST(hdp_world, reads_back_by_every_nic) {
  in_worlds(
      "rdma-read",
      [](int pe, world& w, xio_ctx_t ctx) {
        const ctx_view& c = ctx_of(ctx);
        ASSERT_EQ(c.flush_ring_count, 4u);
        EXPECT_EQ(xio_hdp_flush(ctx), XIO_OK);
        u64 on[3] = {};
        for (u32 i = 0; i < 4; ++i)
          on[c.flush_rings[i].rdma.nic] += load<scope::agent, order::relaxed>(&c.flush_rings[i].state->issued);
        for (const u64 n : on) EXPECT_EQ(n, 1u);
        signal_each_other(pe, w, ctx);
      },
      [](int, options& o) { o.model_nics = 3; });
}

TEST(hdp_world, pool_contexts_share_the_ring) {
  in_worlds(
      "sdma",
      [](int, world&, xio_ctx_t ctx) {
        const ctx_view& c = ctx_of(ctx);
        ASSERT_EQ(c.pool_count, 2u);
        for (u32 i = 0; i < 2; ++i) {
          EXPECT_EQ(c.pool[i].flush_rings, c.flush_rings);
          EXPECT_EQ(hdp_flush(c.pool[i]), XIO_OK);
        }
        EXPECT_EQ(flushes(c), 2u);
      },
      [](int, options& o) { o.ctx_pool = 2; });
}

TEST(hdp_world, refuses_a_copy_engine_without_the_packet) {
  const std::string no = in_worlds(
      "sdma", [](int, world&, xio_ctx_t) {}, [](int, options& o) { o.model_gpu = "gfx1010"; }, XIO_ERR_UNSUPPORTED);
  EXPECT_TRUE(says(no, "XIO_HDP=sdma cannot be")) << no;
}

TEST(hdp_world, wants_one_decision_where_queue_pairs_are_exchanged) {
  const std::string no = in_worlds(
      "auto", [](int, world&, xio_ctx_t) {},
      [](int pe, options& o) {
        if (pe == 1) o.hdp = xio::option::hdp::rdma_read;
      },
      XIO_ERR_ARG);
  EXPECT_TRUE(says(no, "XIO_HDP")) << no;
}

#endif

}  // namespace
