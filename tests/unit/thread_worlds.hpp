// SPDX-License-Identifier: MIT
// Worlds whose PEs are threads of one process.
#pragma once
#include "ctx/world.hpp"
#include "outcome.hpp"
#include "says.hpp"
#include "thread_channel.hpp"

namespace xio::test {

inline xio_ctx_t make_ctx(world& w, xio_route_t route = XIO_ROUTE_AUTO, std::uint32_t pool = 0) {
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = route;
  attr.pool = pool;
  xio_ctx_t ctx{};
  w.contexts().create(&attr, &ctx);
  return ctx;
}

inline dev::ctx_view& view_of(const xio_ctx_t& ctx) { return *static_cast<dev::ctx_view*>(ctx.view); }

// body(pe, world) on each of n PEs, then finalize; any exception that leaves body is a failure of the test.
inline void in_world(int n, const options& o, const std::function<void(int, world&)>& body) {
  run_pes(n, [&](int pe, std::unique_ptr<bootstrap::channel> channel) {
    const auto out = outcome_of([&] {
      world w(o, std::move(channel));
      body(pe, w);
      w.finalize();
    });
    EXPECT_EQ(out.status, XIO_OK) << "PE " << pe << ": " << out.sentence;
  });
}

}  // namespace xio::test
