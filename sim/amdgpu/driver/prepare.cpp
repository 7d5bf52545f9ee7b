// SPDX-License-Identifier: MIT
// prepare FOLDER: checks XIO_AMDGPU_* and writes the topology; prepare --options: prints what may be set.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "amdgpu/driver/topology.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--options") == 0) {
    std::fputs(amdgpu::settings_text().c_str(), stdout);
    return 0;
  }
  if (argc != 2) {
    std::fputs("prepare FOLDER|--options\n", stderr);
    return 2;
  }
  amdgpu::settings chosen;
  if (const auto wrong = amdgpu::read_settings(chosen, [](const char* name) { return std::getenv(name); })) {
    std::fprintf(stderr, "software AMD GPU: %s\n", wrong->c_str());
    return 2;
  }
  try {
    amdgpu::write_topology(chosen, argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "software AMD GPU: the topology cannot be written: %s\n", e.what());
    return 2;
  }
  return 0;
}
