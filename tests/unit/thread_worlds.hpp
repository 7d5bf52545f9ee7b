// SPDX-License-Identifier: MIT
// Worlds whose PEs are threads of one process, and what a call in one of them came to.
#pragma once
#include "ctx/world.hpp"
#include "says.hpp"
#include "thread_channel.hpp"

namespace xio::test {

struct outcome {
  xio_status_t status = XIO_OK;
  std::string sentence;
};

inline outcome outcome_of(const std::function<void()>& body) {
  outcome o;
  o.status = guard(body);
  if (o.status != XIO_OK) o.sentence = last_error();
  return o;
}

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
