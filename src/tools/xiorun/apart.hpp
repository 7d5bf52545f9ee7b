// SPDX-License-Identifier: MIT
// The run goes on in a process of its own, whose descendants are all of it and nothing else, for two reasons. When
// xiorun is killed by SIGKILL, somebody must be left who ends what the PEs have started. And a shell that becomes
// xiorun
// (`server & exec xiorun ...`, `exec > >(tee log); exec xiorun ...`) leaves it its children: they are not of the run,
// nor is what they start, but once the kernel gives them to xiorun nobody can tell.
#pragma once
#include <signal.h>

#include <functional>

namespace xio::run {

// Reaches the run when xiorun is gone.
inline constexpr int k_front_gone = SIGUSR2;

// Runs `body` in a forked process, which gets every signal that is to end this one and k_front_gone after it.
// Returns in both processes, with body's result. `name` is argv[0], for the run to have another one: a user that kills
// all processes called xiorun leaves the run to clean up.
int run_apart(const std::function<int()>& body, char* name);
// In it: a descriptor of all signals that it looks at, which are blocked from now on; -1: errno says why.
int open_signals();

}  // namespace xio::run
