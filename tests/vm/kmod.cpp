// SPDX-License-Identifier: MIT
// The module's ioctls, driven in a guest by tests/vm/kmod_guest.sh:
//   kmod calls|unprivileged|lockdown BDF TRANSLATED | memlock|gone|cycles BDF | queues BDF FILE | loss BDF ACTION |
//   fuzz BDF SECONDS SEED
#include "kmod_rig.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  const std::string what = a.empty() ? "" : a[0];
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (what == "calls" && a.size() == 3)
    kmod::try_calls(a[1], a[2] == "1");
  else if (what == "unprivileged" && a.size() == 3)
    kmod::try_unprivileged(a[1], a[2] == "1");
  else if (what == "memlock" && a.size() == 2)
    kmod::try_memlock(a[1]);
  else if (what == "gone" && a.size() == 2)
    kmod::try_gone(a[1]);
  else if (what == "lockdown" && a.size() == 3)
    kmod::try_lockdown(a[1], a[2] == "1");
  else if (what == "cycles" && a.size() == 2)
    kmod::try_cycles(a[1]);
  else if (what == "queues" && a.size() == 3)
    kmod::try_queues(a[1], a[2]);
  else if (what == "loss" && a.size() == 3)
    kmod::try_loss(a[1], a[2]);
  else if (what == "fuzz" && a.size() == 4)
    kmod::try_fuzz(a[1], static_cast<unsigned>(std::stoul(a[2])), static_cast<unsigned>(std::stoul(a[3])));
  else
    return 2;
  std::printf("%s: %d failures\n", what.c_str(), kmod::failures);
  return kmod::failures == 0 ? 0 : 1;
}
