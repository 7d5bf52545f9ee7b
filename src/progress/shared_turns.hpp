// SPDX-License-Identifier: MIT
// A device whose turns any thread that waits for it may take: work that one thread gives and waits for need not go
// to another thread and back. A thread that comes second assists. Where there is much to do that nobody can assist
// with, the machine keeps its turns: those who wait can give more meanwhile.
#pragma once
#include "progress/machine.hpp"

namespace xio::progress {

class shared_turns : public device {
 public:
  // How long a machine leaves the device to those who help, and they leave a heavy one to it.
  static constexpr std::chrono::microseconds k_away{200};

  explicit shared_turns(device& d) : device_(d) {}

  // A machine's turn: none while somebody else has one, or had a light one lately. Then it assists.
  bool poll() override;
  // Not while others help.
  bool at_rest(sleeper::descriptors& found) override;
  // Anybody's turn, or assistance if somebody has one at the moment or the machine keeps the device. True if there was
  // work. Thread safe.
  bool help();

 private:
  using clock = std::chrono::steady_clock;

  device& device_;
  std::mutex turn_;
  std::atomic<std::uint32_t> helped_{0};           // light turns
  std::uint32_t seen_ = 0;                         // of helped_, by the machine
  clock::time_point away_until_{};                 // the machine
  std::atomic<clock::time_point> kept_until_{{}};  // by the machine
};

}  // namespace xio::progress
