// SPDX-License-Identifier: MIT
// Collective calls: every PE does its local part, then all learn how it went everywhere. One exchange per call,
// and a second one where it went wrong on one PE, so that a failure on one PE, a different argument or a different call
// is an error on every PE and never a hang.
#pragma once
#include <functional>

#include "bootstrap/bootstrap.hpp"

namespace xio {

class peer_states;

enum class call : std::uint32_t {
  init = 1,
  finalize,
  barrier,
  malloc,
  free,
  ctx_create,
  ctx_destroy,
  ctx_recover,
  team_create,
  team_destroy,
  free_dropped,
};

// A value that has to be the same on every PE, and its name in sentences. At most k_max_arguments of them.
struct argument {
  const char* name;
  std::uint64_t value;
};
using arguments = std::vector<argument>;
constexpr std::size_t k_max_arguments = 6;

class agreement {
 public:
  explicit agreement(bootstrap::channel& c) : channel_(&c) {}
  void use(bootstrap::channel& c) { channel_ = &c; }
  // Both exchanges of a vote that goes wrong have one deadline, from the first one on. Without: each has the channel's.
  void limit(std::uint64_t timeout_ms) { timeout_ms_ = timeout_ms; }
  // From now on calls fail where a PE was excluded, and say which PE is dead.
  void watch(peer_states* states) { states_ = states; }

  // Runs `step`, which must not use the channel, and sends its outcome to all PEs. Throws on every PE if it threw on
  // one (there with its own error, elsewhere with that of the first PE that failed), if the PEs are in different calls,
  // or if the steps return different arguments (`mismatch`).
  void vote(call what, const std::function<arguments()>& step, xio_status_t mismatch = XIO_ERR_ARG);

  // Whether all PEs have come to one outcome of the last vote, good or bad.
  bool came_to_one() const { return came_to_one_; }

  // The same without arguments.
  template <class Step>
  void each(call what, Step&& step) {
    vote(what, [&] {
      step();
      return arguments{};
    });
  }

 private:
  bootstrap::channel* channel_;
  peer_states* states_ = nullptr;
  std::optional<std::uint64_t> timeout_ms_;
  bool came_to_one_ = false;
};

}  // namespace xio
