// SPDX-License-Identifier: MIT
#include "tools/overwrite.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace xio::tools {
namespace {

constexpr std::size_t k_block = 512, k_piece = std::size_t{1} << 20;

std::uint64_t word(const unsigned char* data, std::size_t index) {
  std::uint64_t w = 0;
  std::memcpy(&w, data + 8 * index, 8);
  return w;
}

// Each word but a block's first follows from the one before (tools/xio-tester/pattern.hpp), for every seed.
bool is_testers(const unsigned char* data, std::size_t words) {
  for (std::size_t i = 1; i < words; ++i) {
    std::uint64_t x = word(data, i - 1);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    if (x == 0 || word(data, i) != x) return false;
  }
  return true;
}

// Words are mix() of numbers that follow one another (tools/xio-perf/data.cpp), from where on depends on PE and place.
std::uint64_t unmix_perfs(std::uint64_t x) {
  constexpr std::uint64_t k_mix = 0xbf58476d1ce4e5b9ull, k_unmix = 0x96de1b173f119089ull;
  static_assert(k_mix * k_unmix == 1);
  x *= k_unmix;
  return x ^ (x >> 31) ^ (x >> 62);
}

bool is_perfs(const unsigned char* data, std::size_t words) {
  for (std::size_t i = 1; i < words; ++i)
    if (unmix_perfs(word(data, i)) != unmix_perfs(word(data, i - 1)) + 1) return false;
  return true;
}

// The next byte at or after `at` that is in no hole, or the file's end.
std::uint64_t next_data(int fd, std::uint64_t at, std::uint64_t bytes) {
  const off_t next = lseek(fd, static_cast<off_t>(at), SEEK_DATA);
  if (next >= 0) return static_cast<std::uint64_t>(next) / k_block * k_block;
  return errno == ENXIO ? bytes : at;
}

}  // namespace

bool is_test_data(const unsigned char* data, std::size_t bytes) {
  if (std::all_of(data, data + bytes, [](unsigned char c) { return c == 0; })) return true;
  if (bytes < 64 || bytes % 8 != 0) return false;
  return is_testers(data, bytes / 8) || is_perfs(data, bytes / 8);
}

std::string lost_by_writing(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return "";
    return fmt::format("{} cannot be looked at ({}), and writes would replace what it holds", path, errno_text(errno));
  }
  const auto bytes = static_cast<std::uint64_t>(st.st_size);
  if (!S_ISREG(st.st_mode)) return fmt::format("{} is a disk, and writes replace what is on it", path);
  const unique_fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fmt::format("{} has {} bytes that you may not read, and writes would replace them", path, bytes);
  std::vector<unsigned char> piece(k_piece);
  for (std::uint64_t at = next_data(fd.get(), 0, bytes); at < bytes; at = next_data(fd.get(), at, bytes)) {
    const ssize_t got = pread(fd.get(), piece.data(), k_piece, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fmt::format("{} cannot be read at byte {} ({}), and writes would replace what it holds", path, at,
                         errno_text(errno));
    if (got == 0) break;
    const auto n = static_cast<std::size_t>(got);
    for (std::size_t i = 0; i < n; i += k_block)
      if (!is_test_data(&piece[i], std::min(k_block, n - i)))
        return fmt::format("{} has {} bytes that no test of XIO's wrote (from byte {} on), which writes would replace",
                           path, bytes, at + i);
    at += n;
  }
  return "";
}

}  // namespace xio::tools
