// SPDX-License-Identifier: MIT
// One kernel launch: its grid, handed out workgroup by workgroup to the workers that run it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "xio/device/platform/host_exec.hpp"

namespace xio::host_exec {

struct launch {
  index3 grid{}, block{};
  std::size_t shared_bytes = 0;
  std::function<void()> kernel;              // what one GPU thread does
  std::function<void(launch&)> on_finished;  // called once, at the end

  std::uint64_t workgroups = 0;
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> failed{false};  // the rest of the grid is given up

  unsigned block_threads() const { return block.x * block.y * block.z; }
  void fail_with(const std::string& sentence);
  std::string failure();  // empty: none

 private:
  std::mutex guard_;
  std::string sentence_;
};

// Empty when the launch can be run, else the reason.
std::string check_launch(const launch& l);

// Starts it; returns at once. Throws when threads or memory for it cannot be had.
void start(const std::shared_ptr<launch>& l);

}  // namespace xio::host_exec
