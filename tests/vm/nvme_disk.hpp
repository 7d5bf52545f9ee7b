// SPDX-License-Identifier: MIT
// Stamps, and disks of the kernel's driver that carry them: the other side of nvme_drive.hip.
#pragma once
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "../mpi/rig.hpp"

namespace nvme_disk {

constexpr size_t k_piece = 64 << 10;

__host__ __device__ inline uint64_t stamp_of(uint64_t offset, uint64_t salt) {
  return (offset + salt * 0x100000001b3u) * 0x9e3779b97f4a7c15u;
}

struct disk {
  // A disk, past the page cache, or the file behind a drive in software.
  explicit disk(const char* path) {
    struct stat s {};
    const bool is_file = stat(path, &s) == 0 && S_ISREG(s.st_mode);
    fd = open(path, O_RDWR | (is_file ? 0 : O_DIRECT));
    bytes = static_cast<uint64_t>(s.st_size);
    if (fd < 0 || (!is_file && ioctl(fd, BLKGETSIZE64, &bytes) != 0)) rig::give_up(path, "cannot be opened");
    if (posix_memalign(reinterpret_cast<void**>(&words), 4096, k_piece) != 0) rig::give_up(path, "no memory");
  }
  int fd = -1;
  uint64_t bytes = 0;
  uint64_t* words = nullptr;
};

inline int stamp(const char* path, uint64_t salt) {
  const disk d(path);
  for (uint64_t at = 0; at < d.bytes; at += k_piece) {
    for (uint64_t i = 0; i < k_piece; i += 8) d.words[i / 8] = stamp_of(at + i, salt);
    if (pwrite(d.fd, d.words, k_piece, static_cast<off_t>(at)) != static_cast<ssize_t>(k_piece))
      rig::give_up(path, "cannot be written");
  }
  if (fsync(d.fd) != 0) rig::give_up(path, "cannot be flushed");
  return 0;
}

inline int verify(const char* path, uint64_t outer, uint64_t inner) {
  const disk d(path);
  for (uint64_t at = 0; at < d.bytes; at += k_piece) {
    if (pread(d.fd, d.words, k_piece, static_cast<off_t>(at)) != static_cast<ssize_t>(k_piece))
      rig::give_up(path, "cannot be read");
    for (uint64_t i = 0; i < k_piece; i += 8) {
      const bool middle = at + i >= d.bytes / 4 && at + i < d.bytes / 4 * 3;
      if (d.words[i / 8] == stamp_of(at + i, middle ? inner : outer)) continue;
      std::printf("FAIL %s: byte %llu holds %016llx\n", path, static_cast<unsigned long long>(at + i),
                  static_cast<unsigned long long>(d.words[i / 8]));
      return 1;
    }
  }
  return 0;
}

}  // namespace nvme_disk
