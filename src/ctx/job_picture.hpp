// SPDX-License-Identifier: MIT
// Jobs that run on this machine, as their PEs show them (src/ctx/wait_page.hpp): which PE waits for which, and
// why none goes on.
#pragma once
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace xio::info {

constexpr int k_nobody = -1;  // not known

struct seen_wait {
  enum class of { member, word, drive, queue, host } what = of::member;
  int pe = 0, for_pe = k_nobody;
  std::string text;  // "for PE 1 to come to barrier 5 of all"
  double seconds = 0;
  std::uint32_t workgroup = 0;
  bool shared = false;        // another workgroup of the PE is in the same channel
  std::uint64_t channel = 0;  // of a team's call: which team and channel
};

constexpr double k_unknown = -1;

// An op of a PE, before or in its host threads: those under way come first, then the newest.
struct seen_op {
  int pe = 0;
  std::string text;  // "write of 8 bytes to PE 1 on queue 5"
  bool under_way = false;
  double seconds = k_unknown;  // since it began, or else ended
};

struct seen_pe {
  std::string state = "unseen";  // or running, stopped, ended
  pid_t pid = 0;
  std::string call;  // of the host, that lasts
  double call_s = 0;
};

struct seen_job {
  std::uint32_t local_pes = 0;
  std::vector<seen_pe> pes;
  std::vector<seen_wait> waits;  // of kernels, then of the host
  std::vector<seen_op> ops;
  bool waits_in(std::size_t pe) const {
    return std::ranges::any_of(waits, [&](const auto& w) { return w.pe == static_cast<int>(pe); });
  }
};

// which: the PID of a PE or of its ancestor, or "all". Takes a second. remarks: on what could not be read. deadline_ms:
// if not 0, waits that have just ended by that deadline count, too. Throws.
std::map<std::uint64_t, seen_job> look_at_jobs(const std::string& which, std::vector<std::string>& remarks,
                                               std::uint64_t deadline_ms = 0);
// Adds the waits that calls of the host are, once all PEs are seen, and sorts all by PE.
void gather_waits(seen_job& job);
// One line: why the job stands still, as far as its waits say.
std::string cause_of(const seen_job& job);

// All of it.
std::string text_of(const seen_job& job);

// To the log, when a call of this PE has ended by the deadline: once per job on this machine. Not for deadlines below a
// second, which programs have that poll.
void show_once(std::uint64_t job, std::uint64_t deadline_ms) noexcept;

}  // namespace xio::info
