// SPDX-License-Identifier: MIT
// A shell that becomes xiorun (`server & exec xiorun ...`, `exec > >(tee log); exec xiorun ...`) leaves it its
// children. They are not of the run, nor is what they start, but once the kernel gives them to xiorun nobody can tell.
// So beside such children the run goes into a process of its own, whose descendants are all of it and nothing else.
#pragma once
#include <functional>

namespace xio::run {

bool has_children();

// What `body` answers in a forked process, which gets every signal that is to end this one and dies with it. Returns in
// both processes. `listener` is the run's alone: callers of a PE that is gone shall not wait at a port that is open.
int run_apart(const std::function<int()>& body, int listener);

}  // namespace xio::run
