// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_lender.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "base/text_form.hpp"
#include "gpu/gpu.hpp"
#include "memory/pages.hpp"

namespace xio::nvme {
namespace {

namespace fs = std::filesystem;

// PCI Code and ID Assignment 1.11, 1.2: mass storage, non-volatile memory.
constexpr const char* k_nvme_class_text = "0x0108";
// Linux, include/linux/ioport.h, as sysfs shows them.
constexpr std::uint64_t k_is_memory = 0x200, k_is_prefetchable = 0x2000;
// PCI Local Bus 3.0, 6.2.2 and 6.2.5.1.
constexpr std::size_t k_command = 4, k_first_bar = 0x10;
constexpr unsigned char k_memory_enabled = 2, k_bar_is_io = 1, k_bar_is_prefetchable = 8;

std::string config_of(const fs::path& function) {
  std::ifstream in(function / "config", std::ios::binary);
  std::string bytes(64, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

// Memory that may be read and written freely, other than registers: the bridge in front of it may merge what goes
// there.
bool is_plain_memory(const fs::path& function, unsigned bar) {
  std::ifstream in(function / "resource");
  std::string start, end, flags;
  for (unsigned i = 0; i <= bar; ++i) in >> start >> end >> flags;
  if (in) {
    const std::uint64_t is = std::strtoull(flags.c_str(), nullptr, 16);
    return (is & k_is_memory) != 0 && (is & k_is_prefetchable) != 0;
  }
  const std::string config = config_of(function);
  const std::size_t at = k_first_bar + 4 * bar;
  if (at + 4 > config.size()) return false;
  const auto low = static_cast<unsigned char>(config[at]);
  return (low & k_bar_is_io) == 0 && (low & k_bar_is_prefetchable) != 0;
}

// Everything that speaks against it, before anything is touched.
void check_function(const std::string& where, const fs::path& function, unsigned bar) {
  std::error_code ec;
  if (!fs::exists(function, ec))
    fail(XIO_ERR_CONFIG, "XIO_NVME_QUEUE_BAR={}: there is no such PCI function; see lspci -D", where);
  if (fs::exists(fs::symlink_status(function / "driver", ec)))
    fail(XIO_ERR_CONFIG, "XIO_NVME_QUEUE_BAR={}: the driver {} has that function; take a device that no driver has",
         where, target_of(function / "driver"));
  if (first_word(function / "class").starts_with(k_nvme_class_text))
    fail(XIO_ERR_CONFIG,
         "XIO_NVME_QUEUE_BAR={}: that is an NVMe controller, whose BARs are registers; take a device with memory",
         where);
  if (!is_plain_memory(function, bar))
    fail(XIO_ERR_CONFIG,
         "XIO_NVME_QUEUE_BAR={}: that BAR is not prefetchable memory, so it may be registers; take one that lspci -v "
         "calls prefetchable",
         where);
}

// The memory of a function without a driver is off.
void enable(const std::string& where, const fs::path& function) {
  std::ofstream(function / "enable") << "1";
  const std::string config = config_of(function);
  const bool is_on =
      config.size() <= k_command || (static_cast<unsigned char>(config[k_command]) & k_memory_enabled) != 0;
  if (std::strtol(first_word(function / "enable").c_str(), nullptr, 10) <= 0 || !is_on)
    fail(XIO_ERR_CONFIG, "XIO_NVME_QUEUE_BAR={}: its memory could not be enabled; run as root, or write 1 to {}", where,
         (function / "enable").string());
}

}  // namespace

vfio_lender::vfio_lender(const std::string& where, const std::string& root) : where_(where) {
  static const text_form function_and_bar("([0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\\.[0-7])/([0-5])");
  const auto part = function_and_bar.parts_of(where);
  if (part.empty())
    fail(XIO_ERR_CONFIG, "XIO_NVME_QUEUE_BAR={}: write a PCI function and the number of a BAR, as in 0000:0a:00.0/2",
         where);
  const std::string function = root + "/sys/bus/pci/devices/" + part[1];
  check_function(where, function, static_cast<unsigned>(part[2][0] - '0'));
  enable(where, function);
  const std::string path = fmt::format("{}/resource{}", function, part[2]);
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
  const std::size_t words = *whole / sizeof *word;
  for (std::size_t i = 0; i < words; ++i) word[i] = 0;
  if (word[0] == 0 && word[words - 1] == 0) return base_ + *at;
  free_.release(*at);
  fail(XIO_ERR_CONFIG,
       "XIO_NVME_QUEUE_BAR={} does not keep what is written to it; take another device, or host memory (an empty "
       "variable)",
       where_);
}

void vfio_lender::take_back(void* base) {
  free_.release(static_cast<std::uint64_t>(static_cast<unsigned char*>(base) - base_));
}

}  // namespace xio::nvme
