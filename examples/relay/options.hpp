// SPDX-License-Identifier: MIT
// The command line of relay.
#pragma once
#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "job.hpp"

struct options {
  std::string in, out;
  uint64_t chunk = 256 * 1024;
  unsigned slots = 16;
};

[[noreturn]] inline void refuse(const std::string& why) {
  leave(2,
        "relay: %s\nusage: mpirun -np 2 relay --in FILE --out COPY [--chunk BYTES] [--slots N]\n"
        "  --in FILE      or a whole drive by XIO's name for it: nvme:BDF/NSID, kmod:BDF/NSID\n"
        "  --chunk BYTES  bytes per transfer, a multiple of 4096, at most 1073741824 (default 262144)\n"
        "  --slots N      transfers in flight, 1 to 64 (default 16)",
        why.c_str());
}

inline uint64_t number(const char* text, const char* what) {
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != 0 || errno != 0)
    refuse(std::string(what) + " wants a number, not '" + text + "'");
  return value;
}

inline options parse(int argc, char** argv) {
  static const option known[] = {{"in", 1, nullptr, 'i'},
                                 {"out", 1, nullptr, 'o'},
                                 {"chunk", 1, nullptr, 'c'},
                                 {"slots", 1, nullptr, 's'},
                                 {nullptr, 0, nullptr, 0}};
  options a;
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, "", known, nullptr)) != -1;) {
    if (c == 'i') a.in = optarg;
    if (c == 'o') a.out = optarg;
    if (c == 'c') a.chunk = number(optarg, "--chunk");
    if (c == 's') a.slots = static_cast<unsigned>(std::min<uint64_t>(number(optarg, "--slots"), 1u << 20));
    if (c == '?') refuse(std::string("unknown or incomplete option '") + argv[optind - 1] + "'");
  }
  if (optind < argc) refuse(std::string("unexpected argument '") + argv[optind] + "'");
  if (a.in.empty() || a.out.empty()) refuse("--in and --out are needed");
  if (a.chunk == 0 || a.chunk % 4096 != 0 || a.chunk > 1 << 30)
    refuse("--chunk must be a multiple of 4096, at most 1073741824");
  if (a.slots < 1 || a.slots > k_max_slots) refuse("--slots must be 1 to 64");
  return a;
}
