// SPDX-License-Identifier: MIT
#include "ctx/metrics.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/pe_file.hpp"
#include "base/peer_word.hpp"
#include "base/thread.hpp"
#include "base/trace.hpp"
#include "ctx/call_text.hpp"
#include "ctx/membership.hpp"
#include "ctx/rings.hpp"
#include "gpu/memory_file.hpp"

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

namespace {

using clock = std::chrono::steady_clock;

constexpr std::string_view k_type = "# TYPE ";
constexpr const char* k_end = "# EOF\n";
constexpr const char* k_times =
    "{0} summary\n# UNIT {0} seconds\n# HELP {0} How long the last ops took, of those that a host thread carries.\n";

// Worlds of this process may have one file: it has the counts of all that are in it at the same time.
struct written_file {
  std::map<std::string, std::string> texts;  // of worlds, by their labels
  std::set<std::string> ended;
};
struct written_files {
  std::mutex lock;
  std::map<std::string, written_file> all;
};
written_files& written() {
  static auto* one = new written_files;
  return *one;
}

std::chrono::seconds seconds_in(const std::string& option, std::size_t colon) {
  const char* const end = option.data() + option.size();
  int seconds = 0;
  const auto [stop, wrong] = std::from_chars(colon == std::string::npos ? end : &option[colon] + 1, end, seconds);
  if (colon == 0 || wrong != std::errc() || stop != end || seconds < 1 || seconds > 86400)
    fail(XIO_ERR_CONFIG,
         "XIO_METRICS='{}': give a file and the seconds, 1 to 86400, after which it is written, as F:10", option);
  return std::chrono::seconds(seconds);
}

}  // namespace

metrics::metrics(const std::string& option, const membership& members, std::shared_ptr<wait_page> page, bool traced)
    : labels_(fmt::format("job=\"{:016x}\",pe=\"{}\"", members.job(), members.me())), page_(std::move(page)) {
  if (!option.empty()) {
    const auto colon = option.rfind(':');
    period_ = seconds_in(option, colon);
    file_ = pe_file(option.substr(0, colon), members.me(), members.size());
    const std::lock_guard hold(written().lock);
    written_file& f = written().all[file_];
    for (const std::string& world : std::exchange(f.ended, {})) f.texts.erase(world);
    trace::start("", members.me(), members.size(), 0);
  }
  if (traced && page_ != nullptr) waits_.emplace();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    fail(XIO_ERR_NO_MEMORY, "a pipe for counts: {}; raise the limit of descriptors (ulimit -n)", errno_text(errno));
  asked_.reset(ends[0]);
  ask_.reset(ends[1]);
  thread_ = start_thread("counts", [this] { run(); });
  if (page_ != nullptr) __atomic_store_n(&page_->ask, static_cast<std::uint32_t>(ask_.get()), __ATOMIC_RELEASE);
}

metrics::~metrics() {
  stop_ = true;
  while (::write(ask_.get(), "", 1) < 0 && errno == EINTR) continue;  // a full pipe wakes the thread, too
  thread_.join();
  if (page_ != nullptr) __atomic_store_n(&page_->ask, 0, __ATOMIC_RELEASE);
}

void metrics::add(const counted_queues& q) {
  const std::lock_guard hold(lock_);
  const auto known = std::ranges::find_if(queues_, [&](const auto& one) { return one.owner == q.owner; });
  if (known == queues_.end()) return queues_.push_back(q);
  known->rings.insert(known->rings.end(), q.rings.begin(), q.rings.end());
  known->peers.insert(known->peers.end(), q.peers.begin(), q.peers.end());
}

void metrics::forget(const void* owner) {
  const std::lock_guard hold(lock_);
  const auto q = std::ranges::find_if(queues_, [&](const auto& one) { return one.owner == owner; });
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
  constexpr int k_sample_ms = 10;
  auto due = clock::now() + period_;
  for (bool last = false; !last;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - clock::now()).count();
    pollfd asked{asked_.get(), POLLIN, 0};
    poll(&asked, 1, waits_ ? k_sample_ms : file_.empty() ? -1 : static_cast<int>(std::max<long>(left, 0)));
    last = stop_;
    char dropped[64];
    if (read(asked_.get(), dropped, sizeof dropped) > 0 && !last) reply();
    if (waits_) waits_->sample(*page_);
    if (file_.empty() || (!last && clock::now() < due)) continue;
    write();
    due = clock::now() + period_;
  }
  waits_.reset();
}

void metrics::write() {
  std::string now, why;
  if (guard([&] { now = text(); }) != XIO_OK) why = last_error();
  const std::lock_guard hold(written().lock);
  written_file& f = written().all[file_];
  if (why.empty()) {
    f.texts[labels_] = now;
    std::vector<std::string> texts;
    for (const auto& [world, its] : f.texts) texts.push_back(its);
    why = replace_file(file_, merge_metrics(texts));
  }
  if (stop_) f.ended.insert(labels_);
  if (why.empty()) return;
  log::warn("XIO_METRICS: no counts of this PE are written any more: {}", why);
  file_.clear();
}

// A reader has a descriptor of its own, so the last reply may go.
void metrics::reply() noexcept {
  const auto status = guard([&] {
    const std::string all = text() + last_calls();
    unique_fd file = gpu::make_memory_file(k_counts_name, all.size(), "memory for counts", "there is no reply");
    if (pwrite(file.get(), all.data(), all.size(), 0) != static_cast<ssize_t>(all.size())) return;
    const std::uint64_t replied = (page_->replied >> 32) + 1;
    std::swap(replied_, file);
    __atomic_store_n(&page_->replied, replied << 32 | static_cast<std::uint32_t>(replied_.get()), __ATOMIC_RELEASE);
  });
  if (status != XIO_OK) log::debug("xio-info gets no reply about counts: {}", last_error());
}

// For xio-info --job, behind the text: what is on its way, and refused and late calls of kernels.
std::string metrics::last_calls() {
  rows all;
  const std::lock_guard hold(lock_);
  for (const counted_queues& q : queues_) gather(q, all);
  std::string out;
  for (const auto& [key, c] : all) {
    const auto& [owner, engine, peer] = key;
    if (c.under_way + c.failed == 0) continue;
    out += fmt::format("{}: {} entries of {}{} on their way{}\n", owner, c.under_way, engine,
                       peer < 0 ? "" : fmt::format(" to PE {}", peer), c.failed != 0 ? ", and a queue has failed" : "");
  }
  for (const counted_queues& q : queues_)
    if (dev::call_record r{}; q.failed_call && q.failed_call(r))
      out += fmt::format("{}: {}\n", q.labels, printable(call_text(r, {page_->heap, page_->heap_bytes, page_->n_pes})));
  return out;
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
  const std::lock_guard hold(lock_);
  rows all = ended_;
  for (const counted_queues& q : queues_) gather(q, all);
  std::string out;
  for (const auto& f : k_families) {
    out += std::string(k_type) + fmt::format(fmt::runtime(f.about), f.name);
    for (const auto& [key, c] : all) {
      const auto& [owner, engine, peer] = key;
      out += fmt::format("{}{}{{{},{},engine=\"{}\"", f.name, f.suffix, labels_, owner, engine);
      out += (peer < 0 ? "" : fmt::format(",peer=\"{}\"", peer)) + fmt::format("}} {}\n", c.*f.value);
    }
  }
  out += std::string(k_type) + fmt::format(fmt::runtime(k_times), "xio_op_seconds");
  for (auto& [pe, ns] : trace::op_times()) {
    std::ranges::sort(ns);
    for (const int percent : {50, 90, 99})
      out += fmt::format("xio_op_seconds{{{},peer=\"{}\",quantile=\"{}\"}} {}\n", labels_, pe, percent / 100.0,
                         static_cast<double>(ns[(ns.size() - 1) * static_cast<std::size_t>(percent) / 100]) / 1e9);
  }
  return out + k_end;
}

std::string merge_metrics(const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  std::map<std::string, std::string> families;
  for (const std::string& text : texts) {
    std::string* family = nullptr;
    bool is_new = false;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line) && line + '\n' != k_end;) {
      if (line.starts_with(k_type)) {
        const std::string name = line.substr(k_type.size(), line.find(' ', k_type.size()) - k_type.size());
        is_new = families.count(name) == 0;
        family = &families[name];
        if (is_new) names.push_back(name);
      }
      if (family != nullptr && (is_new || !line.starts_with("# "))) *family += line + '\n';
    }
  }
  std::string out;
  for (const std::string& name : names) out += families[name];
  return out + k_end;
}

}  // namespace xio
