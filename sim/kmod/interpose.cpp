// SPDX-License-Identifier: MIT
// The simulated module's part of preload/calls.hpp: /dev/xio and /dev/udmabuf, descriptors of them, and the drive below
// /sys. All other calls go on to the C library, or to the software GPU's driver where that is preloaded, too.
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "kmod/buffers.hpp"
#include "kmod/module.hpp"
#include "preload/calls.hpp"

namespace {

using kmod_sim::kernel_module;

enum class device { none, module, udmabuf };

std::mutex lock;
// By the number of the file that stands for an open. Made on first use, as libraries map memory before this one is set
// up, and never destroyed.
std::map<ino_t, device>& opens() {
  static auto& all = *new std::map<ino_t, device>;
  return all;
}

ino_t number_of(int fd) {
  struct stat s {};
  return fd >= 0 && fstat(fd, &s) == 0 ? s.st_ino : 0;
}

device device_of(int fd, ino_t* number) {
  if (kmod_sim::session() == nullptr) return device::none;
  const std::lock_guard hold(lock);
  if (opens().empty()) return device::none;
  const int before = errno;
  *number = number_of(fd);
  errno = before;
  const auto found = opens().find(*number);
  return found == opens().end() ? device::none : found->second;
}

}  // namespace

namespace preload {

int open_device(const char* path) {
  if (path == nullptr || kmod_sim::session() == nullptr) return k_not_ours;
  const bool module = std::strcmp(path, "/dev/xio") == 0;
  if (!module && std::strcmp(path, "/dev/udmabuf") != 0) return k_not_ours;
  const std::string& state = kmod_sim::session()->module;
  if (module && (state == "absent" || state == "denied")) {
    errno = state == "absent" ? ENOENT : EACCES;
    return -1;
  }
  const int fd = memfd_create(module ? "xio-module" : "xio-udmabuf", MFD_CLOEXEC);
  if (fd < 0) return -1;
  const std::lock_guard hold(lock);
  opens()[number_of(fd)] = module ? device::module : device::udmabuf;
  return fd;
}

bool has_device(const char*) { return false; }

std::string moved(const char* path) {
  static const std::string folder = "/sys/bus/pci/devices/";
  if (kmod_sim::session() == nullptr || std::strncmp(path, folder.c_str(), folder.size()) != 0) return "";
  const char* name = path + folder.size();
  for (std::size_t i = 0; i < kmod_sim::k_drives; ++i) {
    const std::size_t length = std::strlen(kmod_sim::k_bdf[i]);
    if (std::strncmp(name, kmod_sim::k_bdf[i], length) != 0 || (name[length] != 0 && name[length] != '/')) continue;
    return kmod_sim::session()->folder + "/sys" + std::to_string(i) + (name + length);
  }
  return "";
}

int control(int fd, unsigned long request, void* argument) {
  ino_t number = 0;
  const device kind = device_of(fd, &number);
  if (kind == device::none) return k_not_ours;
  if (kind == device::udmabuf && request == UDMABUF_CREATE)
    return kmod_sim::make_udmabuf(*static_cast<const udmabuf_create*>(argument));
  const int failed = kind == device::module ? kernel_module::current()->call(number, request, argument) : ENOTTY;
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

bool map(const mapping& m, void** result) {
  ino_t number = 0;
  if (device_of(m.fd, &number) != device::module) return false;
  *result = kernel_module::current()->map(number, m.at, m.bytes, m.protection, m.flags, m.offset);
  return true;
}

}  // namespace preload

// An open ends with its descriptor; nothing here copies those of /dev/xio.
PRELOAD_SHOWN int close(int fd) {
  ino_t number = 0;
  if (device_of(fd, &number) != device::none) {
    if (kernel_module* m = kernel_module::current(); m != nullptr) m->close(number);
    const std::lock_guard hold(lock);
    opens().erase(number);
  }
  static const auto real = preload::next(static_cast<int (*)(int)>(nullptr), "close");
  return real(fd);
}
