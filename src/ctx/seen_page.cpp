// SPDX-License-Identifier: MIT
#include "ctx/seen_page.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "xio/xio.h"

namespace xio::info {
namespace {

constexpr std::uint32_t k_most_pes = 1 << 16;
constexpr std::size_t k_most_reply = std::size_t{64} << 20;

std::string descriptor(pid_t pid, std::uint32_t fd) { return fmt::format("/proc/{}/fd/{}", pid, fd); }
bool is_memory_of(const std::string& path, const char* name) {
  char target[64];
  const ssize_t n = readlink(path.c_str(), target, sizeof target);
  return n > 0 && std::string_view(target, static_cast<std::size_t>(n)).starts_with(fmt::format("/memfd:{}", name));
}

// 0: of all.
pid_t number_of(const std::string& which) {
  int number = 0;
  const auto [end, wrong] = std::from_chars(which.data(), which.data() + which.size(), number);
  return which != "all" && wrong == std::errc() && end == which.data() + which.size() ? std::max(number, -1) : 0;
}

}  // namespace

bool polled_page::read() {
  page = {};
  if (pread(file.get(), &page, sizeof page, 0) <= 0 || page.magic == 0) return false;
  page.call[sizeof page.call - 1] = '\0';
  for (auto& name : page.drives) name[sizeof name - 1] = '\0';
  for (const dev::wait_note& n : page.notes)
    if (is_note(static_cast<std::size_t>(&n - page.notes), n))
      notes.try_emplace(key_of(n), n.now, n).first->second.second = n;
  return true;
}

bool polled_page::all_last() const {
  return std::ranges::all_of(notes, [](const auto& n) { return lasts(n.second); });
}

std::string polled_page::wrong() const {
  if (page.magic != k_wait_page_magic || page.layout != k_wait_page_layout || page.bytes != sizeof page)
    return fmt::format("process {} shows its waits as another version of XIO does; use the xio-info of that version",
                       pid);
  if (page.n_pes == 0 || page.n_pes > k_most_pes || page.pe >= page.n_pes || page.ticks_per_ms == 0)
    return fmt::format("process {} shows numbers of PEs that cannot be, and is left out", pid);
  return "";
}

bool polled_page::ask() {
  replied = page.replied;
  const std::string pipe = descriptor(pid, page.ask);
  struct stat st {};
  if (page.ask == 0 || stat(pipe.c_str(), &st) != 0 || !S_ISFIFO(st.st_mode)) return false;
  const unique_fd to(open(pipe.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  return asked = to && write(to.get(), "?", 1) == 1;
}

std::string polled_page::reply() const {
  std::uint64_t now = 0;
  if (pread(file.get(), &now, sizeof now, offsetof(wait_page, replied)) != sizeof now || now == replied) return "";
  const std::string path = descriptor(pid, static_cast<std::uint32_t>(now));
  const unique_fd from(is_memory_of(path, k_counts_name) ? open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  struct stat st {};
  if (!from || fstat(from.get(), &st) != 0 || st.st_size < 0) return "";
  std::string text(std::min(k_most_reply, static_cast<std::size_t>(st.st_size)), '\0');
  return pread(from.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) ? text : "";
}

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

namespace {

template <class Each>
void each_entry(const std::string& folder, Each&& each) {
  DIR* dir = opendir(folder.c_str());
  if (dir == nullptr) return;
  while (const dirent* entry = readdir(dir)) each(entry->d_name);
  closedir(dir);
}

void open_pages_of(pid_t pid, std::vector<polled_page>& to) {
  const std::string fds = fmt::format("/proc/{}/fd", pid);
  each_entry(fds, [&](const char* name) {
    const std::string path = fds + "/" + name;
    if (!is_memory_of(path, k_wait_page_name)) return;
    unique_fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat st {};
    if (!file || fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode)) return;
    // A child that was forked has its parent's.
    const auto same = [&](const polled_page& p) { return p.inode == st.st_ino; };
    if (std::ranges::none_of(to, same)) to.push_back({pid, std::move(file), st.st_ino});
  });
}

bool descends(pid_t pid, pid_t from) {
  for (int depth = 0; pid > 1 && pid != from && depth < 1000; ++depth) pid = stat_of(pid).second;
  return pid == from;
}

}  // namespace

std::string why_none(const std::string& which) {
  const pid_t root = number_of(which);
  struct stat st {};
  if (root == 0) return "no PE of this user runs on this machine, in a world that xio_init has made";
  if (stat(fmt::format("/proc/{}", root).c_str(), &st) != 0) return fmt::format("process {} has ended", which);
  if (st.st_uid != geteuid())
    return fmt::format("process {} is of user {}; ask as that user", which, static_cast<unsigned>(st.st_uid));
  return fmt::format("process {} is no PE and has started none that xio_init has made part of a world", which);
}

std::vector<polled_page> open_pages(const std::string& option, const std::string& which) {
  const pid_t root = number_of(which);
  if (which != "all" && root <= 0) fail(XIO_ERR_ARG, "{} {}: give the number of a process, or all", option, which);
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

}  // namespace xio::info
