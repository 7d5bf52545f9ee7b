// SPDX-License-Identifier: MIT
// "block:PATH", and "file:PATH" of a block device: whole, and nobody holds it. Data on it are kept, unless the caller
// says otherwise.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "transport/nvme/file_name.hpp"
#include "transport/nvme/holders.hpp"
#include "transport/nvme/nvme.hpp"

namespace xio::nvme {
namespace {

// File systems, partition tables and volumes begin or end with what tells them from zeroes.
constexpr std::uint64_t k_looked_at = 1 << 20;

// The kernel's name of the device, as "sda".
std::string whole_device(const std::string& path, const std::string& name) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) fail(XIO_ERR_IO, "cannot open {}: {}; check the path", name, errno_text(errno));
  std::error_code none;
  const auto folder =
      std::filesystem::canonical(fmt::format("/sys/dev/block/{}:{}", major(s.st_rdev), minor(s.st_rdev)), none);
  if (none) fail(XIO_ERR_IO, "cannot open {}: its holders cannot be known without /sys; mount that", name);
  if (std::filesystem::exists(folder / "partition", none))
    fail(XIO_ERR_ARG, "cannot open {}: it is a partition; give the whole device, {}", name,
         "/dev/" + folder.parent_path().filename().string());
  return folder.filename().string();
}

// The first byte that is not 0 of the beginning and of the end, or the device's size.
std::uint64_t first_data(int fd, std::uint64_t bytes) {
  std::vector<unsigned char> piece(k_looked_at);
  for (const std::uint64_t from : {std::uint64_t{0}, bytes - std::min(bytes, k_looked_at)}) {
    const ssize_t got = pread(fd, piece.data(), std::min(bytes, k_looked_at), static_cast<off_t>(from));
    if (got < 0) return from;  // what cannot be read may be somebody's
    const auto found = std::find_if(piece.begin(), piece.begin() + got, [](unsigned char c) { return c != 0; });
    if (found != piece.begin() + got) return from + static_cast<std::uint64_t>(found - piece.begin());
  }
  return bytes;
}

}  // namespace

xio_storage_attr_t attr_of_free_device(const opening& what, const std::string& path) {
  xio_storage_attr_t attr = what.attr;
  if ((attr.flags & XIO_STORAGE_TRUNCATE) != 0)
    fail(XIO_ERR_ARG, "cannot open {}: a block device is not emptied; leave XIO_STORAGE_TRUNCATE out", what.name);
  const std::string disk = whole_device(path, what.name);
  if (const std::string who = holder_of_disks("", {disk}); !who.empty())
    fail(XIO_ERR_STATE, "cannot open {}: {}; free it first, or use files on it by file:PATH", what.name, who);
  if ((attr.flags & (XIO_STORAGE_READ_ONLY | XIO_STORAGE_CREATE)) == 0) {
    const unique_fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const off_t end = lseek(fd.get(), 0, SEEK_END);
    if (end < 0) fail(XIO_ERR_IO, "cannot open {}: {}; check its permissions", what.name, errno_text(errno));
    const auto bytes = static_cast<std::uint64_t>(end);
    if (const std::uint64_t at = first_data(fd.get(), bytes); at != bytes)
      fail(XIO_ERR_STATE,
           "cannot open {} for writing: it holds data (at byte {}); open it with XIO_STORAGE_CREATE if they may go, or "
           "with XIO_STORAGE_READ_ONLY",
           what.name, at);
  }
  if ((attr.flags & XIO_STORAGE_READ_ONLY) == 0) attr.flags &= ~std::uint32_t{XIO_STORAGE_CREATE};
  return attr;
}

std::unique_ptr<controller> open_block(const opening& what) {
  const std::string path = parse_file_name(what.rest, what.name).path;
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) fail(XIO_ERR_IO, "cannot open {}: {}; check the path", what.name, errno_text(errno));
  if (!S_ISBLK(s.st_mode))
    fail(XIO_ERR_ARG, "cannot open {}: it is no block device; write file:{} for a file", what.name, path);
  return open_file(what);
}

}  // namespace xio::nvme
