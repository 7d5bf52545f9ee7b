// SPDX-License-Identifier: MIT
// The experts of moe_survivors.hip: what they compute, and the file that has their weights.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "check.hpp"

constexpr int k_experts = 16;  // however many PEs there are: the file does not depend on it
constexpr uint32_t k_hidden = 32;

// A token's values are whole numbers, and so every platform has the same sums.
struct row {
  uint32_t value[k_hidden];
  uint32_t expert;
};
struct weights {
  uint32_t at[k_hidden][k_hidden];
};

inline uint32_t mixed(uint64_t x) {
  x = (x + 1) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>((x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u >> 32);
}

inline uint32_t weight_of(uint64_t expert, uint64_t i, uint64_t j) { return mixed(expert << 32 | i << 16 | j); }

inline row token_of(int pe, uint64_t step, uint64_t index) {
  const uint64_t seed = static_cast<uint64_t>(pe) << 48 | step << 24 | index << 8;
  row r{};
  for (uint32_t i = 0; i < k_hidden; ++i) r.value[i] = mixed(seed | i);
  r.expert = mixed(seed | k_hidden) % k_experts;
  return r;
}

inline bool is_right(const row& token, const row& result) {
  for (uint32_t j = 0; j < k_hidden; ++j) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < k_hidden; ++i) sum += token.value[i] * weight_of(token.expert, i, j);
    if (sum != result.value[j]) return false;
  }
  return true;
}

// --- The file: a block that says what it is, and a block for each expert ------------------------------------------

constexpr uint64_t k_block = sizeof(weights);

__host__ __device__ inline uint64_t place_of(uint64_t expert) { return k_block * (1 + expert); }

inline std::vector<char> file_header() {
  std::vector<char> block(k_block);
  std::snprintf(block.data(), block.size(), "weights of %d experts, %u times %u words each\n", k_experts, k_hidden,
                k_hidden);
  return block;
}

// Makes the file unless there is one of that name, which stays as it is.
inline void make_file(const char* path) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0 && errno == EEXIST) return;
  if (fd < 0) leave(1, "cannot make '%s': %s", path, std::strerror(errno));
  bool whole = write(fd, file_header().data(), k_block) == static_cast<ssize_t>(k_block);
  weights w;
  for (uint64_t e = 0; e < k_experts && whole; ++e) {
    for (uint32_t i = 0; i < k_hidden; ++i)
      for (uint32_t j = 0; j < k_hidden; ++j) w.at[i][j] = weight_of(e, i, j);
    whole = write(fd, &w, sizeof w) == static_cast<ssize_t>(sizeof w);
  }
  if (close(fd) == 0 && whole) return;
  const int why = errno;
  unlink(path);
  leave(1, "cannot write '%s': %s", path, std::strerror(why));
}

// Opens the file, if it has such weights.
inline int open_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) leave(1, "cannot read '%s': %s", path, std::strerror(errno));
  struct stat s {};
  std::vector<char> header(k_block);
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || static_cast<uint64_t>(s.st_size) != place_of(k_experts) ||
      pread(fd, header.data(), k_block, 0) != static_cast<ssize_t>(k_block) || header != file_header())
    leave(2, "'%s' exists, and has no weights of these experts; name another file", path);
  return fd;
}
