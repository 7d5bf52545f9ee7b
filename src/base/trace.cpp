// SPDX-License-Identifier: MIT
#include "base/trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/pe_file.hpp"
#include "base/process.hpp"

namespace xio::trace {

std::atomic<bool> g_on{false};

namespace {

constexpr std::uint64_t k_kept = 65536;

struct kept_span : span {
  std::uint64_t end;
  pid_t thread;
};
struct recorder {
  std::mutex lock;
  std::vector<kept_span> spans = std::vector<kept_span>(k_kept);
  std::uint64_t head = 0, written = 0;  // spans so far
  std::string file, title;
  int pe = 0;
  std::uint64_t lead = 0;

  std::uint64_t first() const { return head - std::min(head, k_kept); }
};
// Never destroyed: threads and exit handlers go on.
recorder& kept() {
  static auto* one = new recorder;
  return *one;
}

std::string us(std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

void append_span(std::string& to, const recorder& r, std::uint64_t id) {
  const kept_span& s = r.spans[id % k_kept];
  const bool call = std::string_view(s.kind) == "call";
  // Readers have a line for each name of what may overlap: a NIC's writes and a drive's are two.
  const std::string name = call ? s.name : fmt::format("{} {}", s.kind, s.name);
  const auto event = [&](char phase, std::uint64_t at, const std::string& more) {
    to += fmt::format(R"(,{}{{"ph":"{}","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{}{}}})", "\n", phase, s.kind,
                      name, r.pe, s.thread, us(at - r.lead), more);
  };
  if (call) return event('X', s.begin, R"(,"dur":)" + us(s.end - s.begin));
  const std::string key = fmt::format(R"(,"id":"{}.{}")", r.pe, id);
  std::string args = fmt::format(R"(,"args":{{"bytes":{})", s.bytes);
  if (s.pe != k_none) args += fmt::format(R"(,"for PE":{})", s.pe);
  if (s.queue != k_none) args += fmt::format(R"(,"queue":{})", s.queue);
  event('b', s.begin, key + args + "}");
  event('e', s.end, key);
}

}  // namespace

void keep(const span& s, std::uint64_t end) noexcept {
  thread_local const pid_t thread = gettid();
  recorder& r = kept();
  const std::lock_guard hold(r.lock);
  r.spans[r.head++ % k_kept] = {s, end, thread};
}

void start(const std::string& file, int pe, int n_pes, std::int64_t lead) {
  recorder& r = kept();
  const std::lock_guard hold(r.lock);
  if (g_on.exchange(true)) return;  // a further world of this process
  r.pe = pe;
  r.lead = static_cast<std::uint64_t>(lead);
  r.title =
      fmt::format(R"([{{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"PE {0} of {1}"}}}})", pe, n_pes);
  if (file.empty()) return;
  r.file = pe_file(file, pe, n_pes);
  // An error is said before the program runs.
  if (const std::string why = replace_file(r.file, "[]\n"); !why.empty())
    log::warn("XIO_TRACE: no trace of this PE is written: {}", why), r.file = "";
  std::atexit(write);
}

void write() noexcept {
  if (!g_on.load() || process::is_forked()) return;
  guard([] {
    recorder& r = kept();
    const std::lock_guard hold(r.lock);
    if (r.file.empty() || r.head == std::exchange(r.written, r.head)) return;
    std::string text = r.title;
    for (std::uint64_t id = r.first(); id != r.head; ++id) append_span(text, r, id);
    if (r.first() != 0)
      log::warn("XIO_TRACE: {} has the last {} spans of this PE, not the {} before", r.file, k_kept, r.first());
    if (const std::string why = replace_file(r.file, text + "\n]\n"); !why.empty())
      log::warn("XIO_TRACE: no trace of this PE is written: {}", why);
  });
}

std::map<std::uint32_t, std::vector<std::uint64_t>> op_times() {
  recorder& r = kept();
  const std::lock_guard hold(r.lock);
  std::map<std::uint32_t, std::vector<std::uint64_t>> all;
  for (std::uint64_t id = r.first(); id != r.head; ++id)
    if (const kept_span& s = r.spans[id % k_kept]; s.pe != k_none && std::string_view(s.kind) == "op")
      all[s.pe].push_back(s.end - s.begin);
  return all;
}

}  // namespace xio::trace
