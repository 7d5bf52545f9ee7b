// SPDX-License-Identifier: MIT
// The storage API over the model: which call reports an error, which code it has, and what goes on after it.
#include "nvme_rig.hpp"

using namespace xio;
using namespace xio::test;

TEST(nvme_errors, an_error_reaches_its_owner_alone) {
  stamped_rig r({.depth = 16, .mdts = 8192});
  r.device().inject({.first_lba = 40, .last_lba = 40, .status = wire::nvme::k_unrecovered_read});
  xio_req_t all[8];
  for (std::uint64_t i = 0; i < 8; ++i)
    all[i] = xio_read_nbi(r.ctx(), r.heap() + i * 4096, r.storage(), i * 4096, 4096);
  for (std::uint64_t i = 0; i < 8; ++i) EXPECT_EQ(r.wait(all[i]), i == 5 ? XIO_ERR_STORAGE : XIO_OK) << i;
  EXPECT_PAIRS((r.ring().state->vendor, 0x281u), (r.ring().state->failed_ticket, 5u), (r.ring().state->failed, 0u));
  EXPECT_EQ(r.quiet(), XIO_ERR_STORAGE);  // once
  EXPECT_EQ(r.quiet(), XIO_OK);
  // Long after its word was taken by younger commands the log still knows.
  for (int i = 0; i < 200; ++i) ASSERT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 4096), XIO_OK);
  EXPECT_PAIRS((r.wait(all[5]), XIO_ERR_STORAGE), (r.wait(all[4]), XIO_OK));
}

TEST(nvme_errors, any_part_of_a_split_transfer_can_fail_it) {
  stamped_rig r({.depth = 64, .mdts = 8192});
  for (const std::uint64_t bad : {0u, 3u, 7u}) {
    r.device().inject({.first_lba = bad * 16, .last_lba = bad * 16});
    const xio_req_t before = xio_read_nbi(r.ctx(), r.heap(), r.storage(), 65536, 16384);
    const xio_req_t split = xio_read_nbi(r.ctx(), r.heap() + 65536, r.storage(), 0, 65536);
    const xio_req_t after = xio_read_nbi(r.ctx(), r.heap() + 16384, r.storage(), 65536, 16384);
    EXPECT_EQ(r.wait(after), XIO_OK);
    EXPECT_EQ(r.wait(split), XIO_ERR_STORAGE) << bad;
    EXPECT_PAIRS((r.wait(before), XIO_OK), (r.quiet(), XIO_ERR_STORAGE));
  }
  // More commands than the queue has room for: an early one fails.
  r.device().inject({.first_lba = 8, .last_lba = 8});
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 1 << 20), XIO_ERR_STORAGE);
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 1 << 20), XIO_OK);
  EXPECT_TRUE(stamped(r.heap(), 0, 1 << 20));
}

// The part that failed may be over long before the last is posted: its code stays with the request, and nothing is in
// flight any more when the failure is known.
TEST(nvme_errors, an_early_part_that_fails_leaves_nothing_behind) {
  stamped_file f;
  for (const std::uint64_t bad : {std::uint64_t{8}, std::uint64_t{500}, std::uint64_t{1010}}) {
    rig r(f.path, {.depth = 8, .mdts = 8192});
    r.device().inject({.first_lba = bad, .last_lba = bad, .status = 0x286});
    const xio_req_t request = xio_read_nbi(r.ctx(), r.heap(), r.storage(), 0, 1 << 20);
    ASSERT_NE(request, 0u);
    if (dev::is_failed_request(request)) {
      EXPECT_EQ(dev::ring_completed(r.ring()), r.ring().state->issued);
    }
    EXPECT_EQ(r.wait(request), XIO_ERR_STORAGE) << bad;
    EXPECT_EQ(xio_storage_code(r.ctx(), request), 0x286u) << bad;
    EXPECT_PAIRS((r.quiet(), XIO_ERR_STORAGE), (r.quiet(), XIO_OK));
  }
}

// Neither a request of nobody's, nor one that was refused before it came to the drive, has a code.
TEST(nvme_errors, what_no_drive_has_failed_has_no_code) {
  stamped_rig r({.depth = 8});
  r.blocks_only();
  for (const std::uint64_t made_up : {~std::uint64_t{0}, ~std::uint64_t{0} << 48, ~std::uint64_t{0} - 0xf})
    EXPECT_EQ(xio_storage_code(r.ctx(), made_up), 0u) << made_up;
  const xio_req_t refused = xio_read_nbi(r.ctx(), r.heap(), r.storage(), 1, 512);
  EXPECT_EQ(r.wait(refused), XIO_ERR_ARG);
  EXPECT_EQ(xio_storage_code(r.ctx(), refused), 0u);
}

// An error that one ctx has reported is still reported to another.
TEST(nvme_errors, every_ctx_hears_of_errors) {
  stamped_rig r({.queues = 2});
  dev::ctx_view second{}, late{};
  second.world = late.world = &r.world();
  const dev::peer_view none{};
  const xio_ctx_t two = ctx_value(&second, 2, second, r.world(), &none);
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 512), XIO_OK);
  EXPECT_EQ(xio_read(two, r.heap(), r.storage(), 0, 512), XIO_OK);
  r.device().inject({.first_lba = 9, .last_lba = 9});
  (void)xio_read_nbi(two, r.heap(), r.storage(), 9 * 512, 512);
  EXPECT_PAIRS((r.quiet(), XIO_ERR_STORAGE), (dev::storage_quiet(second), XIO_ERR_STORAGE), (r.quiet(), XIO_OK),
               (dev::storage_quiet(second), XIO_OK));
  // A flush tells its own ctx.
  r.device().inject({.first_lba = 9, .last_lba = 9});
  (void)xio_read_nbi(two, r.heap(), r.storage(), 9 * 512, 512);
  EXPECT_PAIRS((xio_storage_sync(r.ctx(), r.storage()), XIO_ERR_STORAGE),
               (xio_storage_sync(r.ctx(), r.storage()), XIO_OK), (r.quiet(), XIO_OK),
               (dev::storage_quiet(second), XIO_ERR_STORAGE));
  // Errors from before a ctx came are not its own.
  EXPECT_EQ(dev::storage_quiet(late), XIO_OK);
  EXPECT_EQ(xio_read(ctx_value(&late, 3, late, r.world(), &none), r.heap(), r.storage(), 0, 512), XIO_OK);
  EXPECT_EQ(dev::storage_quiet(late), XIO_OK);
}

TEST(nvme_errors, a_flush_that_fails_says_so) {
  stamped_rig r;
  r.device().inject({.opcode = 0x00, .status = wire::nvme::k_internal_error});
  EXPECT_PAIRS((xio_storage_sync(r.ctx(), r.storage()), XIO_ERR_STORAGE), (r.quiet(), XIO_ERR_STORAGE),
               (xio_storage_sync(r.ctx(), r.storage()), XIO_OK));
}

TEST(nvme_errors, a_command_that_never_completes_ends_in_time) {
  stamped_rig r({.depth = 8, .timeout_ms = 200});
  r.device().inject({.what = model::nvme::fault::kind::hold});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 512), XIO_ERR_TIMEOUT);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, std::chrono::milliseconds(200));
  EXPECT_LT(took, std::chrono::seconds(5));
  // The queue refuses work from now on, and says what it died of.
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 512, 512), XIO_ERR_TIMEOUT);
  EXPECT_EQ(r.quiet(), XIO_ERR_TIMEOUT);
  r.close();
}

TEST(nvme_errors, wrong_arguments_are_refused) {
  stamped_file f;
  rig r(f.path, {});
  rig ro(f.path, {.flags = XIO_STORAGE_READ_ONLY});
  std::vector<unsigned char> stranger(8192);
  unsigned char* h = r.heap();
  r.blocks_only();
  EXPECT_EQ(xio_read(r.ctx(), h, r.storage(), 1, 512), XIO_ERR_ARG);
  EXPECT_EQ(r.view().error, static_cast<std::uint32_t>(XIO_ERR_ARG));
  EXPECT_EQ(xio_read(r.ctx(), h, r.storage(), 0, 511), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(r.ctx(), h, r.storage(), k_file, 512), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(r.ctx(), h, r.storage(), k_file - 512, 1024), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(r.ctx(), h, r.storage(), ~std::uint64_t{511}, 1024), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(r.ctx(), h + 2, r.storage(), 0, 512), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(r.ctx(), nullptr, r.storage(), 0, 512), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(r.ctx(), stranger.data(), r.storage(), 0, 512), XIO_ERR_NOT_REGISTERED);
  EXPECT_EQ(xio_read(r.ctx(), h + (8 << 20) - 512, r.storage(), 0, 1024), XIO_ERR_NOT_REGISTERED);
  EXPECT_EQ(xio_write(ro.ctx(), ro.heap(), ro.storage(), 0, 512), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(ro.ctx(), ro.heap(), ro.storage(), 0, 512), XIO_OK);
  EXPECT_EQ(r.wait(xio_read_nbi(r.ctx(), h, r.storage(), 1, 512)), XIO_ERR_ARG);
  EXPECT_EQ(xio_read(r.ctx(), h, {nullptr, 0}, 0, 512), XIO_ERR_STATE);
  r.close();
  EXPECT_EQ(xio_read(r.ctx(), h, r.storage(), 0, 512), XIO_ERR_STATE);
  EXPECT_EQ(xio_storage_sync(r.ctx(), r.storage()), XIO_ERR_STATE);
}
