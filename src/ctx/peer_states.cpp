// SPDX-License-Identifier: MIT
#include "ctx/peer_states.hpp"

#include <poll.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"

namespace xio {

peer_states::peer_states(const std::vector<hello>& all, const std::vector<bool>& together,
                         const bootstrap::channel& channel)
    : channel_(channel), all_(all.size()) {
  const auto me = static_cast<std::size_t>(channel.rank());
  int unknown = 0;
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    // Numbers of processes mean something in one PID namespace alone. PEs of one process end together.
    if (pe == me || !together[pe] || all[pe].pid_space == 0 || all[pe].pid_space != all[me].pid_space) continue;
    if (all[pe].pid == all[me].pid) continue;
    all_[pe].process = other_process(static_cast<pid_t>(all[pe].pid));
    if (!all_[pe].process.is_known()) ++unknown;
  }
  if (unknown != 0)
    log::info("the ends of {} PEs of this machine will not be seen: the system has no pidfd for them", unknown);
}

void peer_states::bury(record& r, const std::string& why) {
  if (r.dead_at) return;
  r.dead_at = clock::now();
  r.why_dead = why;
}

bool peer_states::is_dead(int pe) {
  record& r = of(pe);
  if (r.dead_at) return true;
  if (r.process.has_ended()) {
    bury(r, "its process has ended");
  } else if (const std::string word = channel_.end_of(pe); !word.empty()) {
    bury(r, "xiorun says: " + word);
  }
  return r.dead_at.has_value();
}

xio_pe_life_t peer_states::life_of(const record& r) {
  if (r.excluded_at) return XIO_PE_EXCLUDED;
  if (r.dead_at) return XIO_PE_DEAD;
  return r.silent_at ? XIO_PE_SILENT : XIO_PE_ALIVE;
}

xio_pe_info_t peer_states::find(int pe, const std::string& silence) {
  record& r = of(pe);
  const bool dead = is_dead(pe);
  const std::string why_silent = r.process.is_stopped() ? "its process is stopped" : silence;
  if (why_silent.empty()) r.silent_at.reset();
  if (!why_silent.empty() && !r.silent_at) r.silent_at = clock::now();
  show(pe);

  xio_pe_info_t info = XIO_PE_INFO_INIT;
  info.life = life_of(r);
  info.is_dead = dead ? 1 : 0;
  std::string why;
  if (r.excluded_at) why = "xio_exclude of this PE";
  if (dead) why += (why.empty() ? "" : "; ") + r.why_dead;
  if (info.life == XIO_PE_SILENT) why = why_silent;
  why.copy(info.why, sizeof info.why - 1);
  const auto since = r.excluded_at ? r.excluded_at : dead ? r.dead_at : r.silent_at;
  if (since)
    info.since_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - *since).count());
  return info;
}

void peer_states::exclude(int pe) {
  if (!of(pe).excluded_at) of(pe).excluded_at = clock::now();
  show(pe);
}

void peer_states::vouch_dead(int pe, const std::string& why) { bury(of(pe), why); }

void peer_states::kill(const std::vector<int>& pes, std::chrono::milliseconds patience) {
  std::vector<pollfd> waited;
  for (const int pe : pes)
    if (!is_dead(pe) && of(pe).process.kill()) waited.push_back({of(pe).process.fd(), POLLIN, 0});
  const auto until = clock::now() + patience;
  while (!waited.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
    if (left <= 0) return;
    const int ready = poll(waited.data(), waited.size(), static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    std::erase_if(waited, [](const pollfd& p) { return p.revents != 0; });
  }
}

void peer_states::check_whole(const char* function) const {
  for (int pe = 0; pe < static_cast<int>(all_.size()); ++pe)
    if (is_excluded(pe) && channel_.takes_part(pe))
      fail(XIO_ERR_PEER,
           "{}: PE {} was excluded, and collective calls need every PE; what works among the others are ops and waits "
           "of kernels, teams without it, and local calls; in a world with XIO_SURVIVE=1 xio_world_shrink lets the "
           "others go on",
           function, pe);
}

std::string peer_states::who_is_dead() {
  for (int pe = 0; pe < static_cast<int>(all_.size()); ++pe)
    if (channel_.takes_part(pe) && is_dead(pe)) return fmt::format("; PE {} is dead: {}", pe, of(pe).why_dead);
  return "";
}

void peer_states::show(int pe) {
  if (table_ != nullptr) __atomic_store_n(&table_[pe], static_cast<std::uint32_t>(life_of(of(pe))), __ATOMIC_RELAXED);
}

void peer_states::show_at(std::uint32_t* table) {
  table_ = table;
  for (int pe = 0; pe < static_cast<int>(all_.size()); ++pe) show(pe);
}

}  // namespace xio
