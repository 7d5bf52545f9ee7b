// SPDX-License-Identifier: MIT
#include "amdgpu/report/counts_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

namespace amdgpu {
namespace {

// MI200 has 512 registers a lane for the waves of a SIMD, in steps of 8, and room for 8 waves (LLVM AMDGPUUsage,
// GFX90A).
constexpr unsigned k_registers = 512, k_step = 8, k_most_waves = 8;

unsigned waves_per_simd(unsigned registers) {
  const unsigned taken = (registers + k_step - 1) / k_step * k_step;
  return taken == 0 ? k_most_waves : std::min(k_most_waves, k_registers / taken);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

std::string counts_line(const std::string& kernel, unsigned gpu, std::uint64_t workgroups, const counters& counted) {
  std::string out = "{\"kernel\":" + quoted(kernel);
  const auto put = [&](const char* name, std::uint64_t value) {
    out += std::string(",\"") + name + "\":" + std::to_string(value);
  };
  put("gpu", gpu);
  put("workgroups", workgroups);
  put("waves", counted.waves);
  put("instructions", counted.instructions);
  for (unsigned i = 0; i < counted.executed.size(); ++i) put(name_of(static_cast<count>(i)), counted.executed[i]);
  put("lines", counted.lines.size());
  put("registers", counted.registers);
  put("waves_per_simd", waves_per_simd(counted.registers));
  return out + "}\n";
}

std::string times_lines(const std::string& kernel, std::uint64_t start, const counters& counted) {
  std::string out;
  for (const auto& [address, ran] : std::map(counted.times.begin(), counted.times.end())) {
    char site[32];
    std::snprintf(site, sizeof(site), "0x%llx", static_cast<unsigned long long>(address - start));
    out += kernel + '\t' + site + '\t' + std::to_string(ran) + '\n';
  }
  return out;
}

void append_counts(const std::string& path, const std::string& line) {
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const bool written = file >= 0 && write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int why = errno;
  if (file >= 0) close(file);
  static std::atomic<bool> said{false};
  if (!written && !said.exchange(true))
    std::fprintf(stderr, "software AMD GPU: counts are lost: %s cannot be written: %s\n", path.c_str(),
                 std::strerror(why));
}

}  // namespace amdgpu
