// SPDX-License-Identifier: MIT
// A file for one test, and data that say where they belong.
#pragma once
#include <sys/vfs.h>

#include "../gtest.hpp"

namespace xio::test {

// Removed when it goes.
struct scratch_file {
  explicit scratch_file(std::uint64_t bytes = 0, const std::string& directory = testing::TempDir()) {
    std::string name = directory + "/xio_nvme_XXXXXX";
    const int fd = mkstemp(name.data());
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) ADD_FAILURE() << "no scratch file in " << name;
    close(fd);
    path = name;
  }
  ~scratch_file() { unlink(path.c_str()); }
  scratch_file& operator=(scratch_file&&) = delete;

  void write(const std::vector<unsigned char>& data) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  }
  std::vector<unsigned char> read() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::uint64_t size() const {
    struct stat s {};
    return stat(path.c_str(), &s) == 0 ? static_cast<std::uint64_t>(s.st_size) : ~std::uint64_t{0};
  }
  // How many of its first pages the page cache has, after it was told to keep none if `drop`.
  std::ptrdiff_t cached(std::uint64_t bytes, bool drop = false) const {
    const int fd = open(path.c_str(), O_RDONLY);
    if (drop) {
      fsync(fd);
      posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    void* pages = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    std::vector<unsigned char> there((bytes + 4095) / 4096);
    EXPECT_EQ(mincore(pages, bytes, there.data()), 0);
    munmap(pages, bytes);
    close(fd);
    return std::count_if(there.begin(), there.end(), [](unsigned char c) { return (c & 1) != 0; });
  }

  std::string path;
};

// A file system whose writes do not say that they would wait, see cache_engine.cpp: ext4 and tmpfs, linux/magic.h.
inline bool seldom_waits(int fd) {
  struct statfs fs {};
  return fstatfs(fd, &fs) == 0 && (fs.f_type == 0xef53 || fs.f_type == 0x01021994);
}

// Every 8 bytes say where in the file they belong, so that a misplaced block is seen.
inline void stamp(void* to, std::uint64_t offset, std::uint64_t bytes, std::uint64_t salt = 0) {
  auto* out = static_cast<unsigned char*>(to);
  for (std::uint64_t i = 0; i < bytes; i += 8) {
    const std::uint64_t word = (offset + i) * 0x9e3779b97f4a7c15u + salt;
    std::memcpy(out + i, &word, 8);
  }
}
inline bool stamped(const void* at, std::uint64_t offset, std::uint64_t bytes, std::uint64_t salt = 0) {
  std::vector<unsigned char> want(bytes);
  stamp(want.data(), offset, bytes, salt);
  return std::memcmp(at, want.data(), bytes) == 0;
}
inline std::vector<unsigned char> stamped_data(std::uint64_t bytes, std::uint64_t salt = 0) {
  std::vector<unsigned char> data((bytes + 7) / 8 * 8);
  stamp(data.data(), 0, data.size(), salt);
  data.resize(bytes);
  return data;
}

}  // namespace xio::test
