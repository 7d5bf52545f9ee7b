// SPDX-License-Identifier: MIT
#include "ctx/metrics.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <exception>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/pe_file.hpp"
#include "base/thread.hpp"
#include "base/trace.hpp"
#include "ctx/membership.hpp"
#include "ctx/rings.hpp"

namespace xio {

struct metrics::family {
  const char *name, *about, *suffix;
  std::uint64_t counts::*value;
};
constexpr metrics::family metrics::k_families[] = {
    {"xio_ops", "{0} counter\n# HELP {0} Ops that kernels have posted.\n", "_total", &counts::ops},
    {"xio_payload_bytes", "{0} counter\n# UNIT {0} bytes\n# HELP {0} Payload of ops.\n", "_total", &counts::bytes},
    {"xio_doorbells", "{0} counter\n# HELP {0} Doorbells rung.\n", "_total", &counts::doorbells},
    {"xio_op_errors", "{0} counter\n# HELP {0} Ops that have failed by themselves.\n", "_total", &counts::errors},
    {"xio_entries_under_way", "{0} gauge\n# HELP {0} Entries posted and not complete.\n", "", &counts::under_way},
    {"xio_failed_queues", "{0} gauge\n# HELP {0} Queues that take no ops any more.\n", "", &counts::failed},
};
constexpr const char* k_times =
    "{0} summary\n# UNIT {0} seconds\n# HELP {0} How long the last ops took, of those that a host thread carries.\n";

metrics::metrics(const std::string& option, const membership& members)
    : labels_(fmt::format("job=\"{:016x}\",pe=\"{}\"", members.job(), members.me())) {
  const auto colon = option.rfind(':');
  const char* const end = option.data() + option.size();
  int seconds = 0;
  const auto [stop, wrong] = std::from_chars(colon == std::string::npos ? end : &option[colon] + 1, end, seconds);
  if (colon == 0 || wrong != std::errc() || stop != end || seconds < 1 || seconds > 86400)
    fail(XIO_ERR_CONFIG,
         "XIO_METRICS='{}': give a file and the seconds, 1 to 86400, after which it is written, as F:10", option);
  period_ = std::chrono::seconds(seconds);
  file_ = pe_file(option.substr(0, colon), members.me(), members.size());
  trace::start("", members.me(), members.size(), 0);
  thread_ = start_thread("XIO_METRICS", [this] { run(); });
}

metrics::~metrics() {
  {
    const std::lock_guard hold(lock_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void metrics::add(const counted_queues& q) {
  forget(q.owner);
  const std::lock_guard hold(lock_);
  queues_.push_back(q);
}

void metrics::forget(const void* owner) {
  const std::lock_guard hold(lock_);
  const auto q = std::find_if(queues_.begin(), queues_.end(), [&](const auto& one) { return one.owner == owner; });
  if (q == queues_.end()) return;
  q->labels = q->labels.substr(0, q->labels.find('=')) + "=\"ended\"";
  try {
    gather(*q, ended_);
  } catch (const std::exception& e) {
    log::debug("the last counts of {} are not known: {}", q->labels, e.what());
  }
  for (auto& [key, c] : ended_) c.under_way = c.failed = 0;
  queues_.erase(q);
}

void metrics::run() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock hold(lock_);
  for (std::string why; why.empty();) {
    const bool last = wake_.wait_for(hold, period_, [&] { return stop_; });
    std::string now;
    if (guard([&] { now = text(); }) != XIO_OK) why = last_error();
    hold.unlock();
    if (why.empty()) why = replace_file(file_, now);
    hold.lock();
    if (!why.empty()) log::warn("XIO_METRICS: no counts of this PE are written any more: {}", why);
    if (last) break;
  }
}

void metrics::gather(const counted_queues& from, rows& to) {
  for (std::size_t i = 0; i < from.rings.size(); ++i) {
    const dev::ring_state s = state_of(from.rings[i]);
    const std::uint64_t completed = s.completed & ~(dev::k_reaping | dev::k_even);
    counts& c = to[{from.labels, engine_name(from.rings[i].kind), i < from.peers.size() ? from.peers[i] : -1}];
    c.ops += s.ops;
    c.bytes += s.bytes;
    c.doorbells += s.doorbells + s.cq_doorbells;
    c.errors += s.op_errors;
    c.failed += s.failed != 0 ? 1 : 0;
    c.under_way += s.failed == 0 && completed < s.issued ? s.issued - completed : 0;
  }
}

std::string metrics::text() {
  rows all = ended_;
  for (const counted_queues& q : queues_) gather(q, all);
  std::string out;
  for (const auto& f : k_families) {
    out += "# TYPE " + fmt::format(fmt::runtime(f.about), f.name);
    for (const auto& [key, c] : all) {
      const auto& [owner, engine, peer] = key;
      out += fmt::format("{}{}{{{},{},engine=\"{}\"", f.name, f.suffix, labels_, owner, engine);
      out += (peer < 0 ? "" : fmt::format(",peer=\"{}\"", peer)) + fmt::format("}} {}\n", c.*f.value);
    }
  }
  out += "# TYPE " + fmt::format(fmt::runtime(k_times), "xio_op_seconds");
  for (auto& [pe, ns] : trace::op_times()) {
    std::sort(ns.begin(), ns.end());
    for (const int percent : {50, 90, 99})
      out += fmt::format("xio_op_seconds{{{},peer=\"{}\",quantile=\"{}\"}} {}\n", labels_, pe, percent / 100.0,
                         static_cast<double>(ns[(ns.size() - 1) * static_cast<std::size_t>(percent) / 100]) / 1e9);
  }
  return out + "# EOF\n";
}

}  // namespace xio
