// SPDX-License-Identifier: MIT
// A program of which a file has kernels for another layout of a ctx than the library writes: it gets no world. A
// process of its own, for the file counts from its start.
#define XIO_CTX_LAYOUT 4711
#include <xio/hip.h>
#include <xio/xio.h>

#include <xio/xio_device.hpp>

#include "says.hpp"

namespace {

using xio::test::says;

__global__ void put_word(xio_ctx_t ctx, std::uint64_t* to, int* status) { *status = xio_p(ctx, to, 9, 0); }

xio_status_t start(xio_world_t** world) {
  const std::vector<xio_option_t> options{{"XIO_BOOTSTRAP", "local"}, {"XIO_BACKEND", "model"}};
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = 1 << 20;
  attr.options = options.data();
  attr.option_count = options.size();
  return xio_init(&attr, world);
}

TEST(other_layout, has_another_number) { EXPECT_NE(xio::dev::k_layout, xio::dev::layout_of(1)); }

TEST(other_layout, gets_no_world_for_its_kernels) {
  (void)put_word;
  xio_world_t* world = nullptr;
  EXPECT_EQ(start(&world), XIO_ERR_STATE);
  EXPECT_EQ(world, nullptr);
  const std::string why = xio_last_error();
  EXPECT_PRED2(says, why, "xio_init");
  EXPECT_PRED2(says, why, "compile all files with kernels with the headers of the libxio that runs");
  EXPECT_PRED2(says, why, std::to_string(xio::dev::k_layout));
}

}  // namespace
