// SPDX-License-Identifier: MIT
// What a thread does between two looks at something.
#pragma once

namespace xio::host_exec {

void relax();

// Lets others have this core. Whether somebody took it: there are more threads than cores, and what the caller waits
// for may itself wait for one.
bool offer_core();

// For a thread that waits for something short before it sleeps: offers the core until it has been taken a few times. A
// thread that waits on must not take turns with the kernel that it waits for.
class short_wait {
 public:
  bool goes_on() {
    if (left_ == 0) return false;
    --left_;
    if (offer_core() && --turns_ == 0) left_ = 0;
    return true;
  }

 private:
  int left_ = 200, turns_ = 4;
};

}  // namespace xio::host_exec
