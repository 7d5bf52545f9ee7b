// SPDX-License-Identifier: MIT
#include "memory/mappings.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "gpu/gpu.hpp"
#include "memory/pages.hpp"

namespace xio::memory {
namespace {

// "7f00-7f10 rw-p 00000000 00:00 0   name"
bool read_head(const std::string& line, mapping& out) {
  unsigned long long begin = 0, end = 0;
  char rights[5] = {};
  int name_at = -1;
  if (std::sscanf(line.c_str(), "%llx-%llx %4s %*x %*s %*s %n", &begin, &end, rights, &name_at) != 3) return false;
  if (begin >= end) return false;
  out = {};
  out.begin = begin;
  out.end = end;
  out.readable = rights[0] == 'r';
  out.writable = rights[1] == 'w';
  if (name_at >= 0) out.name = line.substr(static_cast<std::size_t>(name_at));
  return true;
}

void read_detail(const std::string& line, mapping& out) {
  unsigned long long kilobytes = 0;
  if (std::sscanf(line.c_str(), "KernelPageSize: %llu kB", &kilobytes) == 1) out.page_bytes = kilobytes * 1024;
  if (line.rfind("VmFlags:", 0) != 0) return;
  std::istringstream flags(line.substr(8));
  for (std::string flag; flags >> flag;) out.locked |= flag == "lo";
}

}  // namespace

std::vector<mapping> read_mappings(std::istream& smaps, std::uint64_t first, std::uint64_t last) {
  std::vector<mapping> found;
  mapping head;
  bool wanted = false;
  for (std::string line; std::getline(smaps, line);) {
    if (read_head(line, head)) {
      if (head.begin >= last) break;
      wanted = head.end > first;
      if (wanted) found.push_back(head);
    } else if (wanted) {
      read_detail(line, found.back());
    }
  }
  return found;
}

std::vector<mapping> mappings_of(std::uint64_t first, std::uint64_t last) {
  std::ifstream in("/proc/self/smaps");
  return read_mappings(in, first, last);
}

std::optional<std::vector<mapping>> plain_mappings(std::uint64_t first, std::uint64_t last) {
  std::ifstream in("/proc/self/maps");
  if (!in) return {};
  return read_mappings(in, first, last);
}

bool cover(const std::vector<mapping>& all, std::uint64_t first, std::uint64_t last) {
  for (const mapping& m : all) {
    if (m.begin > first) return false;
    if (m.end > first) first = m.end;
  }
  return first >= last;
}

page_state state_of_page(std::uint64_t address) {
  page_state s;
  void* page = reinterpret_cast<void*>(align_down(address, gpu::page_size()));
  int status = 0;
  // Without target nodes it only asks: the node, -ENOENT for a page that is not there, -EFAULT for the shared page of
  // zeroes and where nothing is mapped (move_pages(2)).
  if (syscall(SYS_move_pages, 0, 1ul, &page, nullptr, &status, 0) == 0) {
    s.resident = status >= 0 ? 1 : status == -ENOENT || status == -EFAULT ? 0 : -1;
    if (status >= 0) s.numa_node = status;
  }
  // Containers forbid that call, and kernels without NUMA have none.
  unsigned char there = 0;
  if (s.resident < 0 && mincore(page, 1, &there) == 0) s.resident = there & 1;
  return s;
}

}  // namespace xio::memory
