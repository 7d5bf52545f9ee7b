// SPDX-License-Identifier: MIT
#include "memory/hdp_flusher.hpp"

namespace xio::memory {
namespace {

using dev::hdp_way;

bool by_thread(hdp_way way) { return way == hdp_way::host || way == hdp_way::readback; }

}  // namespace

hdp_flusher::hdp_flusher(hdp_decision decision, std::uint32_t* flush_register, unsigned char* line)
    : decision_(std::move(decision)), flush_register_(flush_register) {
  if (decision_.way == hdp_way::none) return;
  memory_ = gpu::buffer(sizeof(words), gpu::place::shared);
  auto* w = memory_.as<words>();
  if (flush_register_ == nullptr) flush_register_ = &w->flush_register;
  start(flush_register_, line != nullptr ? line : w->line);
}

void hdp_flusher::start(std::uint32_t* flush_register, unsigned char* line) {
  // At most one of the two is the thread's and differs from the other: see decide_hdp.
  const hdp_way way = by_thread(decision_.way) ? decision_.way : decision_.storage;
  auto* w = memory_.as<words>();
  if (way == hdp_way::host) {
    thread_ = std::make_unique<hdp_thread>(&w->asked, &w->done, [=] { flush_by_register(flush_register); });
  } else if (way == hdp_way::readback) {
    thread_ = std::make_unique<hdp_thread>(&w->asked, &w->done,
                                           [=, n = 0u]() mutable { flush_by_readback(line, ++n & 0xff); });
  }
}

dev::hdp_view hdp_flusher::view() const {
  dev::hdp_view v{};
  v.way = decision_.way;
  v.storage = decision_.storage;
  if (decision_.way == hdp_way::none) return v;
  auto* w = memory_.as<words>();
  v.flush = flush_register_;
  v.asked = &w->asked;
  v.done = &w->done;
  return v;
}

}  // namespace xio::memory
