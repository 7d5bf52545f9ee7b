// SPDX-License-Identifier: MIT
#include "ctx/job_picture.hpp"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "ctx/call_text.hpp"
#include "ctx/seen_page.hpp"
#include "ctx/team_text.hpp"
#include "xio/xio.h"

namespace xio::info {
namespace {

using clock = std::chrono::steady_clock;
using kind = dev::call_kind;

constexpr auto k_poll_interval = std::chrono::milliseconds(25);
constexpr auto k_least = std::chrono::milliseconds(150), k_most = std::chrono::milliseconds(1000);
constexpr auto k_reply = std::chrono::milliseconds(400);   // as long as a reply is waited for
constexpr auto k_for_log = std::chrono::milliseconds(60);  // a call waits for it: one note of each wait
constexpr std::uint64_t k_noted_ms = 100;                  // a wait that lasts is noted more often
constexpr double k_call_lasts_s = 0.5;                     // shorter calls of the host are not shown

std::string place_of(const wait_page& p, std::uint64_t at) {
  return at - p.heap < p.heap_bytes ? fmt::format("heap + {:#x}", at - p.heap) : fmt::format("{:#x}", at);
}

std::string printable(const char* text) {
  std::string out = text;
  for (char& c : out)
    if (c < 0x20 || c > 0x7e) c = '?';
  return out;
}

void tell_queue(const wait_page& p, const dev::wait_note& n, seen_wait& w) {
  static constexpr const char* names[] = {"", "mlx5", "SDMA", "NVMe", "bnxt", "ionic", "ernic", "proxy"};
  const std::uint64_t type = n.address >> 32, id = n.address & UINT32_MAX;
  if (type == static_cast<std::uint64_t>(dev::ring_kind::nvme)) {
    w.what = seen_wait::of::drive;
    const std::string name = drive_of(n) < dev::k_max_storages ? printable(p.drives[drive_of(n)]) : "";
    w.text = fmt::format("for NVMe queue {} of the drive '{}', which has not completed command {}", id, name, n.found);
    return;
  }
  w.what = seen_wait::of::queue;
  const std::string to = w.for_pe == k_nobody ? "" : fmt::format(" to PE {}", w.for_pe);
  w.text = fmt::format("for {} queue {}{}, which has completed {} entries and not {}",
                       type < std::size(names) ? names[type] : "its", id, to, n.found, n.wanted);
}

seen_wait wait_of(const wait_page& p, const dev::wait_note& n) {
  static constexpr const char* signs[] = {"==", "!=", ">", ">=", "<", "<="};
  seen_wait w;
  w.pe = static_cast<int>(p.pe);
  w.for_pe = n.pe < p.n_pes ? static_cast<int>(n.pe) : k_nobody;
  w.seconds = static_cast<double>(n.now - n.since) / static_cast<double>(p.ticks_per_ms) / 1000;
  w.workgroup = n.workgroup;
  const std::string whom = w.for_pe == k_nobody ? "a member" : fmt::format("PE {}", w.for_pe);
  switch (static_cast<kind>(n.kind)) {
    case kind::queue_wait: tell_queue(p, n, w); return w;
    case kind::sync_all: w.text = fmt::format("for {} to come to barrier {} of all", whom, n.wanted); return w;
    case kind::imm_wait: w.text = fmt::format("for an immediate of {}", whom); return w;
    case kind::team_wait:
      w.shared = n.found != 0;
      w.channel = n.address;
      w.text = fmt::format("for {} to come to {} of {}, channel {}", whom,
                           team_call_name(static_cast<std::uint32_t>(n.wanted)), team_name(n.address >> 32),
                           n.address & 0xff);
      return w;
    default: break;
  }
  w.what = seen_wait::of::word;
  const std::uint32_t sign = n.compare & ~(dev::k_compares_signed | dev::k_compares_float);
  w.text = fmt::format("for the word at {} to be {} {} (it holds {}), by {}", place_of(p, n.address),
                       sign < std::size(signs) ? signs[sign] : "?", value_text(n.wanted, n.compare),
                       value_text(n.found, n.compare), call_name(n.kind));
  return w;
}

void add_to(seen_job& job, const polled_page& l, std::uint64_t deadline_ms) {
  const wait_page& p = l.page;
  job.pes.resize(std::max<std::size_t>(job.pes.size(), p.n_pes));
  job.local_pes = p.local_pes;
  seen_pe& pe = job.pes[p.pe];
  pe.pid = l.pid;
  const char state = stat_of(l.pid).first;
  pe.state = std::strchr("ZX", state) != nullptr   ? "ended"
             : std::strchr("Tt", state) != nullptr ? "stopped"
                                                   : "running";
  const auto now = static_cast<std::uint64_t>(clock::now().time_since_epoch().count());
  const double call_s = now > p.call_began ? static_cast<double>(now - p.call_began) / 1e9 : 0;
  if (p.call[0] != '\0' && call_s > k_call_lasts_s) pe.call = printable(p.call), pe.call_s = call_s;
  // A PE that is stopped notes nothing: what it noted last counts, and not all that it ever did.
  std::uint64_t newest = 0;
  for (const auto& [key, note] : l.notes) newest = std::max(newest, note.second.now);
  const auto is_new = [&](const auto& note) { return newest - note.second.now < k_noted_ms * p.ticks_per_ms; };
  const auto gave_up = [&](const auto& note) {
    return deadline_ms != 0 && note.second.now - note.second.since > deadline_ms * p.ticks_per_ms * 9 / 10;
  };
  for (const auto& [key, note] : l.notes)
    if (polled_page::lasts(note) || ((pe.state == "stopped" || gave_up(note)) && is_new(note)))
      job.waits.push_back(wait_of(p, note.second));
}

// Ops of its host threads, waits of its kernels that have ended, and its reply.
void add_last_ops(seen_job& job, const polled_page& l) {
  static constexpr const char* names[] = {"nop", "write", "read", "atomic", "command"};
  const int pe = static_cast<int>(l.page.pe);
  const std::uint64_t now = trace::coarse_now();
  const auto s_since = [&](std::uint64_t then) { return now > then ? static_cast<double>(now - then) / 1e9 : 0; };
  std::vector<trace::shown_op> ops(std::begin(l.page.ops.ops), std::end(l.page.ops.ops));
  std::erase_if(ops,
                [](const auto& o) { return o.number == 0 || static_cast<std::size_t>(o.what) >= std::size(names); });
  std::ranges::sort(ops, [](const auto& a, const auto& b) { return a.number > b.number; });
  std::stable_partition(ops.begin(), ops.end(), [](const auto& o) { return o.ended == 0; });
  for (const trace::shown_op& o : ops)
    job.ops.push_back({pe,
                       fmt::format("{} of {} bytes{} on queue {}", names[static_cast<std::size_t>(o.what)], o.bytes,
                                   o.pe == trace::k_none ? " of a drive" : fmt::format(" to PE {}", o.pe), o.queue),
                       o.ended == 0, s_since(o.ended == 0 ? o.began : o.ended)});
  std::vector<dev::wait_note> waits;
  for (const auto& [key, note] : l.notes)
    if (!polled_page::lasts(note)) waits.push_back(note.second);
  std::ranges::sort(waits, [](const auto& a, const auto& b) { return a.now > b.now; });
  for (const dev::wait_note& n : waits) {
    const seen_wait w = wait_of(l.page, n);
    job.ops.push_back({pe, fmt::format("a wait {}, of {:.1f} s", w.text, w.seconds), false, k_unknown});
  }
  std::istringstream replied(l.asked ? l.reply() : "");
  for (std::string line; std::getline(replied, line) && line != "# EOF";) continue;
  for (std::string line; std::getline(replied, line);)
    job.ops.push_back({pe, printable(line.c_str()), false, k_unknown});
}

}  // namespace

void gather_waits(seen_job& job) {
  // Most of these calls wait for every PE that is not in them.
  for (std::size_t i = 0; i < job.pes.size(); ++i) {
    const seen_pe& pe = job.pes[i];
    if (pe.call.empty() || job.waits_in(i)) continue;
    const auto missing = std::ranges::find_if(job.pes, [&](const auto& p) { return p.call != pe.call; });
    seen_wait w;
    w.what = seen_wait::of::host;
    w.pe = static_cast<int>(i);
    w.seconds = pe.call_s;
    w.text = fmt::format("in {} of the host", pe.call);
    const bool alone = pe.call.starts_with("xio_storage") || pe.call.starts_with("xio_mem");
    if (missing != job.pes.end() && !alone) {
      w.for_pe = static_cast<int>(missing - job.pes.begin());
      w.text = fmt::format("for PE {} to come to {} of the host", w.for_pe, pe.call);
    }
    job.waits.push_back(w);
  }
  std::ranges::stable_sort(job.waits, [](const auto& a, const auto& b) { return a.pe < b.pe; });
}

std::map<std::uint64_t, seen_job> look_at_jobs(const std::string& which, std::vector<std::string>& remarks,
                                               std::uint64_t deadline_ms) {
  std::vector<polled_page> pages = open_pages("--job", which);
  for (polled_page& l : pages)
    if (deadline_ms == 0 && l.read() && l.wrong().empty()) l.ask();
  const auto began = clock::now();
  for (;;) {
    std::erase_if(pages, [](polled_page& l) { return !l.read(); });
    const auto took = clock::now() - began;
    const bool silent =
        took < k_reply && std::ranges::any_of(pages, [](const polled_page& l) { return l.asked && l.reply().empty(); });
    const bool done = !silent && std::ranges::all_of(pages, [](const polled_page& l) { return l.all_last(); });
    if (pages.empty() || took > (deadline_ms != 0 ? k_for_log : k_most) || (done && took > k_least)) break;
    std::this_thread::sleep_for(k_poll_interval);
  }
  std::map<std::uint64_t, seen_job> jobs;
  for (const polled_page& l : pages) {
    if (std::string why = l.wrong(); !why.empty())
      remarks.push_back(std::move(why));
    else
      add_to(jobs[l.page.job], l, deadline_ms), add_last_ops(jobs[l.page.job], l);
  }
  for (auto& [id, job] : jobs) gather_waits(job);
  if (jobs.empty()) fail(XIO_ERR_STATE, "{}", remarks.empty() ? why_none(which) : remarks.front());
  return jobs;
}

void show_once(std::uint64_t job, std::uint64_t deadline_ms) noexcept {
  constexpr std::uint64_t k_least_ms = 1000;
  constexpr int k_lines = 24;
  if (deadline_ms < k_least_ms || !log::enabled(log::level::warn)) return;
  try {
    // One PE of a machine gets this socket's name, and has it until it ends.
    unique_fd shown(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{AF_UNIX, {}};
    fmt::format("xio-shown.{:016x}", job).copy(name.sun_path + 1, sizeof name.sun_path - 1);
    if (bind(shown.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
      // The one that has it must still see what this PE is in.
      static std::atomic<bool> stood{false};
      if (errno == EADDRINUSE && !stood.exchange(true)) std::this_thread::sleep_for(2 * k_for_log);
      return;
    }
    shown.release();
    std::vector<std::string> remarks;
    const auto jobs = look_at_jobs(std::to_string(getpid()), remarks, deadline_ms);
    std::string text = text_of(jobs.at(job));
    std::size_t end = 0;
    for (int line = 0; line < k_lines && end < text.size() - 1; ++line) end = text.find('\n', end + 1);
    log::warn("a call has waited for {} ms in vain. As xio-info --job says: {}", deadline_ms, text.substr(0, end));
  } catch (const std::exception& e) {
    log::info("why a call has waited in vain is not known: {}", e.what());
  }
}

}  // namespace xio::info
