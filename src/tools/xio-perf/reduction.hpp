// SPDX-License-Identifier: MIT
// Reduces by the device API. Each of their kernels is long: those of one call and one kind of caller have a file of
// their own, so that a compiler takes them beside each other.
#pragma once
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {

// One sample: w.batch calls.
template <class Call>
XIO_DEVICE xio_status_t batched(const team_work& w, Call&& call) {
  const std::uint32_t batch = in_register(w.batch);
  return timed(w, [&](std::uint32_t) {
    xio_status_t status = XIO_OK;
    for (std::uint32_t i = 0; i < batch && status == XIO_OK; ++i) status = call();
    return status;
  });
}

void launch_reduce_by_wave(unsigned threads, const team_work& w);
void launch_reduce_by_block(unsigned threads, const team_work& w);
void launch_scatter_by_wave(unsigned threads, const team_work& w);
void launch_scatter_by_block(unsigned threads, const team_work& w);

}  // namespace xio::perf

// launcher: of the four above. call: of the device API, by one kind of caller.
#define XIO_PERF_REDUCTIONS(launcher, call)                                              \
  namespace xio::perf {                                                                  \
  namespace {                                                                            \
  template <xio_reduction Op>                                                            \
  __global__ void reduction(team_work w) {                                               \
    const operands o = operands::of(w);                                                  \
    auto* const dst = values<std::uint32_t>(o.dst);                                      \
    const auto* const src = values<std::uint32_t>(o.src);                                \
    keep(w, batched(w, [&] { return call<Op>(w.ctx, w.team, dst, src, o.bytes / 4); })); \
  }                                                                                      \
  template <xio_reduction Op>                                                            \
  void launch(unsigned threads, const team_work& w) {                                    \
    XIO_PERF_LAUNCH(dim3(1), dim3(threads), reduction<Op>);                              \
  }                                                                                      \
  }                                                                                      \
  void launcher(unsigned threads, const team_work& w) {                                  \
    switch (w.reduction) {                                                               \
      case xio_reduction::sum: return launch<xio_reduction::sum>(threads, w);            \
      case xio_reduction::prod: return launch<xio_reduction::prod>(threads, w);          \
      case xio_reduction::min: return launch<xio_reduction::min>(threads, w);            \
      case xio_reduction::max: return launch<xio_reduction::max>(threads, w);            \
      case xio_reduction::bit_and: return launch<xio_reduction::bit_and>(threads, w);    \
      case xio_reduction::bit_or: return launch<xio_reduction::bit_or>(threads, w);      \
      case xio_reduction::bit_xor: return launch<xio_reduction::bit_xor>(threads, w);    \
    }                                                                                    \
  }                                                                                      \
  } /* namespace xio::perf */
