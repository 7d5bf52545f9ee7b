// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_lender.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <regex>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "memory/pages.hpp"

namespace xio::nvme {

vfio_lender::vfio_lender(const std::string& where, const std::string& root) : where_(where) {
  static const std::regex pattern("([0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7])/([0-5])");
  std::smatch part;
  if (!std::regex_match(where, part, pattern))
    fail(XIO_ERR_CONFIG, "XIO_NVME_QUEUE_BAR={}: write a PCI function and the number of a BAR, as in 0000:0a:00.0/2",
         where);
  const std::string function = root + "/sys/bus/pci/devices/" + part.str(1);
  // A function without a driver does not answer until somebody enables it.
  std::ofstream(function + "/enable") << "1";
  const std::string path = fmt::format("{}/resource{}", function, part.str(2));
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_SYNC);
  if (fd < 0)
    fail(XIO_ERR_CONFIG, "XIO_NVME_QUEUE_BAR={}: {}: {}; name a BAR that this user may map", where, path,
         errno_text(errno));
  struct stat s {};
  const bool known = fstat(fd, &s) == 0;
  bytes_ = known ? memory::align_down(static_cast<std::uint64_t>(s.st_size), gpu::page_size()) : 0;
  void* at = bytes_ == 0 ? MAP_FAILED : mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int why = bytes_ == 0 ? ENODATA : errno;
  ::close(fd);
  if (at == MAP_FAILED)
    fail(XIO_ERR_CONFIG,
         "XIO_NVME_QUEUE_BAR={}: {} cannot be mapped: {}; take a memory BAR of a device that no driver has", where,
         path, errno_text(why));
  base_ = static_cast<unsigned char*>(at);
  free_ = memory::allocator(0, bytes_);
}

vfio_lender::~vfio_lender() { munmap(base_, bytes_); }

void* vfio_lender::lend(std::size_t bytes) {
  const auto whole = memory::align_up(bytes, gpu::page_size());
  const auto at = whole ? free_.allocate(*whole, gpu::page_size()) : std::nullopt;
  if (!at)
    fail(XIO_ERR_NO_MEMORY,
         "{} bytes of queues do not fit into XIO_NVME_QUEUE_BAR={} of {} bytes; use fewer or shorter queues", bytes,
         where_, bytes_);
  // Registers of a device: aligned words, and none left out.
  auto* word = reinterpret_cast<volatile std::uint64_t*>(base_ + *at);
  for (std::size_t i = 0; i < *whole / sizeof *word; ++i) word[i] = 0;
  return base_ + *at;
}

void vfio_lender::take_back(void* base) {
  free_.release(static_cast<std::uint64_t>(static_cast<unsigned char*>(base) - base_));
}

}  // namespace xio::nvme
