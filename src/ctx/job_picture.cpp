// SPDX-License-Identifier: MIT
#include "ctx/job_picture.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>
#include <tuple>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "ctx/call_text.hpp"
#include "ctx/team_text.hpp"
#include "ctx/wait_page.hpp"
#include "xio/xio.h"

namespace xio::info {

namespace {

using clock = std::chrono::steady_clock;
using kind = dev::call_kind;

constexpr std::uint32_t k_most_pes = 1 << 16;
constexpr auto k_poll_interval = std::chrono::milliseconds(25);
constexpr auto k_least = std::chrono::milliseconds(150), k_most = std::chrono::milliseconds(1000);
constexpr auto k_for_log = std::chrono::milliseconds(60);  // a call waits for it: one note of each wait
constexpr std::uint64_t k_noted_ms = 100;                  // a wait that lasts is noted more often
constexpr double k_call_lasts_s = 0.5;                     // shorter calls of the host are not shown

// Of another process only what was checked is used: all of it may be wrong.
struct polled_page {
  pid_t pid;
  unique_fd file;
  ino_t inode;
  wait_page page{};
  // By kind, address, workgroup and beginning: when a note was first written, and as it was last.
  using key = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>;
  std::map<key, std::pair<std::uint64_t, dev::wait_note>> notes{};

  bool read() {
    page = {};
    if (pread(file.get(), &page, sizeof page, 0) <= 0 || page.magic == 0) return false;
    page.call[sizeof page.call - 1] = '\0';
    for (auto& name : page.drives) name[sizeof name - 1] = '\0';
    for (const dev::wait_note& n : page.notes) {
      const bool of_queue = static_cast<kind>(n.kind) == kind::queue_wait && &n - page.notes >= dev::k_wait_notes;
      if ((of_queue || n.check == (dev::k_note_mark ^ n.now ^ n.address)) && n.now > n.since)
        notes.try_emplace({n.kind, n.address, n.workgroup, n.since}, n.now, n).first->second.second = n;
    }
    return true;
  }
  static bool lasts(const std::pair<std::uint64_t, dev::wait_note>& n) { return n.second.now != n.first; }
  bool all_last() const {
    return std::all_of(notes.begin(), notes.end(), [](const auto& n) { return lasts(n.second); });
  }
  std::string wrong() const {
    if (page.magic != k_wait_page_magic || page.layout != k_wait_page_layout || page.bytes != sizeof page)
      return fmt::format("process {} shows its waits as another version of XIO does; use the xio-info of that version",
                         pid);
    if (page.n_pes == 0 || page.n_pes > k_most_pes || page.pe >= page.n_pes || page.ticks_per_ms == 0)
      return fmt::format("process {} shows numbers of PEs that cannot be, and is left out", pid);
    return "";
  }
};

// The letter of its state and its parent; '\0' where it has ended.
std::pair<char, pid_t> stat_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const auto name_ends = line.rfind(')');
  char state = '\0';
  int parent = 0;
  if (name_ends != std::string::npos) std::sscanf(line.c_str() + name_ends + 1, " %c %d", &state, &parent);  // NOLINT
  return {state, parent};
}

template <class Each>
void each_entry(const std::string& folder, Each&& each) {
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return;
  while (const dirent* entry = readdir(dir)) each(entry->d_name);
  closedir(dir);
}

void open_pages_of(pid_t pid, std::vector<polled_page>& to) {
  const std::string fds = fmt::format("/proc/{}/fd", pid), wanted = fmt::format("/memfd:{}", k_wait_page_name);
  each_entry(fds, [&](const char* name) {
    const std::string path = fds + "/" + name;
    char target[64];
    const ssize_t n = readlink(path.c_str(), target, sizeof target);
    if (n < 0 || !std::string_view(target, static_cast<std::size_t>(n)).starts_with(wanted)) return;
    unique_fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode)) return;
    // A child that was forked has its parent's.
    const auto same = [&](const polled_page& p) { return p.inode == st.st_ino; };
    if (std::none_of(to.begin(), to.end(), same)) to.push_back({pid, std::move(file), st.st_ino});
  });
}

bool descends(pid_t pid, pid_t from) {
  for (int depth = 0; pid > 1 && pid != from && depth < 1000; ++depth) pid = stat_of(pid).second;
  return pid == from;
}

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
      w.text = fmt::format("for {} to come to {} of team {}, channel {}", whom,
                           team_call_name(static_cast<std::uint32_t>(n.wanted)), n.address >> 32, n.address & 0xff);
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

// Most calls of the host wait for every PE that is not in them.
void gather_waits(seen_job& job) {
  for (std::size_t i = 0; i < job.pes.size(); ++i) {
    const seen_pe& pe = job.pes[i];
    if (pe.call.empty() || job.waits_in(i)) continue;
    const auto missing = std::find_if(job.pes.begin(), job.pes.end(), [&](const auto& p) { return p.call != pe.call; });
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
  std::stable_sort(job.waits.begin(), job.waits.end(), [](const auto& a, const auto& b) { return a.pe < b.pe; });
}

std::string why_none(const std::string& which, pid_t root) {
  struct stat st {};
  if (root == 0) return "no PE of this user runs on this machine, in a world that xio_init has made";
  if (stat(fmt::format("/proc/{}", root).c_str(), &st) != 0) return fmt::format("process {} has ended", which);
  if (st.st_uid != geteuid())
    return fmt::format("process {} is of user {}; ask as that user", which, static_cast<unsigned>(st.st_uid));
  return fmt::format("process {} is no PE and has started none that xio_init has made part of a world", which);
}

std::vector<polled_page> open_pages(pid_t root) {
  std::vector<polled_page> all;
  each_entry("/proc", [&](const char* name) {
    const int pid = std::atoi(name);
    struct stat st {};
    if (pid <= 0 || stat(fmt::format("/proc/{}", pid).c_str(), &st) != 0 || st.st_uid != geteuid()) return;
    open_pages_of(pid, all);
  });
  if (root == 0) return all;
  // Of each job that has a PE there all PEs count.
  std::set<std::uint64_t> jobs;
  for (polled_page& l : all)
    if (l.read() && l.wrong().empty() && descends(l.pid, root)) jobs.insert(l.page.job);
  std::erase_if(all, [&](polled_page& l) {
    return !l.read() || (l.wrong().empty() ? jobs.count(l.page.job) == 0 : !descends(l.pid, root));
  });
  return all;
}

}  // namespace

std::map<std::uint64_t, seen_job> look_at_jobs(const std::string& which, std::vector<std::string>& remarks,
                                               std::uint64_t deadline_ms) {
  int root = 0;
  const auto [end, wrong] = std::from_chars(which.data(), which.data() + which.size(), root);
  if (which != "all" && (wrong != std::errc() || end != which.data() + which.size() || root <= 0))
    fail(XIO_ERR_ARG, "--job {}: give the number of a process, or all", which);
  std::vector<polled_page> pages = open_pages(root);
  const auto began = clock::now();
  for (;;) {
    std::erase_if(pages, [](polled_page& l) { return !l.read(); });
    const auto took = clock::now() - began;
    const bool done = std::all_of(pages.begin(), pages.end(), [](const polled_page& l) { return l.all_last(); });
    if (pages.empty() || took > (deadline_ms != 0 ? k_for_log : k_most) || (done && took > k_least)) break;
    std::this_thread::sleep_for(k_poll_interval);
  }
  std::map<std::uint64_t, seen_job> jobs;
  for (const polled_page& l : pages) {
    if (std::string why = l.wrong(); !why.empty())
      remarks.push_back(std::move(why));
    else
      add_to(jobs[l.page.job], l, deadline_ms);
  }
  for (auto& [id, job] : jobs) gather_waits(job);
  if (jobs.empty()) fail(XIO_ERR_STATE, "{}", remarks.empty() ? why_none(which, root) : remarks.front());
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
