// SPDX-License-Identifier: MIT
// Calls on a device that another driver has: what they give, and what they refuse.
#include <grp.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <map>

#include "kmod_rig.hpp"

namespace kmod {
namespace {

void info() {
  const descriptor fd = open_module();
  xio_kmod_info a{};
  CHECK(ioctl(fd, XIO_KMOD_INFO, &a) == 0);
  CHECK(a.version == XIO_KMOD_VERSION);
  CHECK(a.features == (XIO_KMOD_HAS_PIN | XIO_KMOD_HAS_MEMORY | XIO_KMOD_HAS_QUEUE_PAIR | XIO_KMOD_HAS_PINNED_QUEUES));
  CHECK(a.max_objects >= 64 && a.max_segments >= 65536 && a.max_block >= (1u << 20) && a.max_memory >= a.max_block);
  xio_kmod_info not_zero{};
  not_zero.reserved[1] = 1;
  REFUSED(ioctl(fd, XIO_KMOD_INFO, &not_zero), EINVAL);
  // The number holds size and direction.
  REFUSED(ioctl(fd, _IOWR(XIO_KMOD_MAGIC, 0, char[8]), &a), ENOTTY);
  REFUSED(ioctl(fd, _IOR(XIO_KMOD_MAGIC, 0, xio_kmod_info), &a), ENOTTY);
  REFUSED(ioctl(fd, _IOWR(XIO_KMOD_MAGIC, 99, xio_kmod_info), &a), ENOTTY);
  REFUSED(ioctl(fd, XIO_KMOD_INFO, nullptr), EFAULT);
}

void bad_devices(const xio_kmod_pci& good) {
  const descriptor fd = open_module();
  const buffer b(k_page);
  for (const auto& [field, wanted] :
       std::map<int, int>{{0, EINVAL}, {1, EINVAL}, {2, EINVAL}, {3, EINVAL}, {4, ENODEV}}) {
    xio_kmod_pci d = good;
    if (field == 0) d.reserved = 1;
    if (field == 1) d.slot = 32;
    if (field == 2) d.function = 8;
    if (field == 3) d.domain = 0xffffffffu;
    if (field == 4) d.bus = 0xee;
    xio_kmod_pin p = pin_of(d, b.fd());
    REFUSED(ioctl(fd, XIO_KMOD_PIN, &p), wanted);
    xio_kmod_memory m = memory_of(d, k_page);
    REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &m), wanted);
    xio_kmod_queue_pair q{};
    q.device = d;
    REFUSED(ioctl(fd, XIO_KMOD_QUEUE_PAIR, &q), wanted);
    xio_kmod_identify i{};
    i.device = d;
    REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &i), wanted);
  }
}

void pins(const xio_kmod_pci& device, bool translated) {
  const descriptor fd = open_module();
  const buffer b(700 * k_page);
  xio_kmod_pin a = pin_of(device, b.fd());
  CHECK(ioctl(fd, XIO_KMOD_PIN, &a) == 0);
  CHECK(a.bytes == b.bytes() && a.handle != 0 && a.segments >= 1 && a.segments <= 700);
  CHECK(a.state == (translated ? XIO_KMOD_PINNED_TRANSLATED : 0));
  const auto list = segments(fd, a.handle, a.segments);
  std::uint64_t sum = 0;
  for (const auto& s : list) {
    CHECK(s.bytes != 0 && s.bytes % k_page == 0 && s.address % k_page == 0);
    sum += s.bytes;
  }
  CHECK(sum == a.bytes);
  // In pieces, and past the end.
  std::vector<xio_kmod_segment> room(a.segments + 8, {1, 1});
  xio_kmod_segments s{};
  s.handle = a.handle;
  s.first = a.segments - 1;
  s.count = 8;
  s.array = reinterpret_cast<std::uintptr_t>(room.data());
  CHECK(ioctl(fd, XIO_KMOD_SEGMENTS, &s) == 0 && s.count == 1);
  CHECK(room[0].address == list.back().address && room[0].bytes == list.back().bytes && room[1].address == 1);
  for (const std::uint32_t first : {a.segments, 0xffffffffu}) {
    s.first = first;
    s.count = 8;
    CHECK(ioctl(fd, XIO_KMOD_SEGMENTS, &s) == 0 && s.count == 0);
  }
  s.first = 0;
  s.count = 0xffffffffu;
  REFUSED(ioctl(fd, XIO_KMOD_SEGMENTS, &s), EINVAL);
  s.count = 8;
  s.array = 8;
  REFUSED(ioctl(fd, XIO_KMOD_SEGMENTS, &s), EFAULT);
  s.array = ~std::uint64_t{0} - 7;
  REFUSED(ioctl(fd, XIO_KMOD_SEGMENTS, &s), EFAULT);
  s.reserved = 1;
  REFUSED(ioctl(fd, XIO_KMOD_SEGMENTS, &s), EINVAL);
  // Another open has no part in it.
  const descriptor other = open_module();
  s = {};
  s.handle = a.handle;
  REFUSED(ioctl(other, XIO_KMOD_SEGMENTS, &s), ENOENT);
  REFUSED(release(other, a.handle), ENOENT);
  CHECK(map(fd, std::uint64_t{a.handle} << 28, k_page) == MAP_FAILED && errno == EINVAL);
  CHECK(release(fd, a.handle) == 0);
  REFUSED(release(fd, a.handle), ENOENT);
  REFUSED(ioctl(fd, XIO_KMOD_SEGMENTS, &s), ENOENT);
}

void bad_pins(const xio_kmod_pci& device) {
  const descriptor fd = open_module();
  const buffer b(4 * k_page);
  xio_kmod_pin a = pin_of(device, -1);
  REFUSED(ioctl(fd, XIO_KMOD_PIN, &a), EBADF);
  a = pin_of(device, fd);
  REFUSED(ioctl(fd, XIO_KMOD_PIN, &a), EINVAL);
  a = pin_of(device, b.fd());
  a.flags = XIO_KMOD_PIN_DEVICE;
  REFUSED(ioctl(fd, XIO_KMOD_PIN, &a), EREMOTEIO);
  a.flags = 2;
  REFUSED(ioctl(fd, XIO_KMOD_PIN, &a), EINVAL);
  a = pin_of(device, b.fd());
  a.reserved[0] = 1;
  REFUSED(ioctl(fd, XIO_KMOD_PIN, &a), EINVAL);
  // No more than it says; and all of them go with the open.
  xio_kmod_info limits{};
  CHECK(ioctl(fd, XIO_KMOD_INFO, &limits) == 0);
  for (std::uint32_t i = 0; i < limits.max_objects; ++i) {
    a = pin_of(device, b.fd());
    CHECK(ioctl(fd, XIO_KMOD_PIN, &a) == 0);
  }
  a = pin_of(device, b.fd());
  REFUSED(ioctl(fd, XIO_KMOD_PIN, &a), ENOSPC);
}

void memory(const xio_kmod_pci& device, bool translated) {
  const descriptor fd = open_module();
  xio_kmod_memory a = memory_of(device, 3 * k_page);
  CHECK(ioctl(fd, XIO_KMOD_MEMORY, &a) == 0);
  CHECK(a.address % k_page == 0 && a.address != 0 && a.handle != 0);
  CHECK(a.state == (translated ? XIO_KMOD_PINNED_TRANSLATED : 0));
  auto* p = static_cast<unsigned char*>(map(fd, a.offset, 3 * k_page));
  CHECK(p != MAP_FAILED);
  for (std::size_t i = 0; i < 3 * k_page; ++i)
    if (p[i] != 0) return CHECK(!"queue memory is zeroed");
  std::memset(p, 0xa5, 3 * k_page);
  // The kernel takes hold of them as of the process's own, as a GPU's driver does.
  unsigned char copy[16] = {};
  const iovec here{copy, sizeof copy}, there{p + 100, sizeof copy};
  CHECK(process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 16 && copy[15] == 0xa5);
  // The same pages again, and a part of them.
  auto* q = static_cast<unsigned char*>(map(fd, a.offset + 2 * k_page, k_page));
  CHECK(q != MAP_FAILED && q[17] == 0xa5);
  q[17] = 0x11;
  CHECK(p[2 * k_page + 17] == 0x11);
  CHECK(map(fd, a.offset, 4 * k_page) == MAP_FAILED && errno == EINVAL);
  CHECK(map(fd, a.offset + 3 * k_page, k_page) == MAP_FAILED && errno == EINVAL);
  CHECK(mmap(nullptr, k_page, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(a.offset)) == MAP_FAILED &&
        errno == EINVAL);
  CHECK(mmap(nullptr, k_page, PROT_READ | PROT_EXEC, MAP_SHARED, fd, static_cast<off_t>(a.offset)) == MAP_FAILED);
  CHECK(mprotect(p, k_page, PROT_READ | PROT_EXEC) == -1);
  const descriptor other = open_module();
  CHECK(map(other, a.offset, k_page) == MAP_FAILED && errno == ENOENT);
  CHECK(map(fd, 0, k_page) == MAP_FAILED && errno == ENOENT);
  CHECK(map(fd, std::uint64_t{1} << 62, k_page) == MAP_FAILED);
  munmap(p, 3 * k_page);
  munmap(q, k_page);
  CHECK(release(fd, a.handle) == 0);

  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{k_page + 1}, ~std::uint64_t{0}, std::uint64_t{8} << 20}) {
    a = memory_of(device, bytes);
    REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &a), EINVAL);
  }
  a = memory_of(device, k_page);
  a.reserved[1] = 1;
  REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &a), EINVAL);
}

void memory_limit(const xio_kmod_pci& device) {
  const descriptor fd = open_module();
  xio_kmod_info limits{};
  CHECK(ioctl(fd, XIO_KMOD_INFO, &limits) == 0);
  std::vector<std::uint32_t> handles;
  xio_kmod_memory a{};
  for (std::uint64_t sum = 0; sum < limits.max_memory; sum += limits.max_block) {
    a = memory_of(device, limits.max_block);
    CHECK(ioctl(fd, XIO_KMOD_MEMORY, &a) == 0);
    handles.push_back(a.handle);
  }
  a = memory_of(device, k_page);
  REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &a), ENOSPC);
  CHECK(release(fd, handles.back()) == 0);
  a = memory_of(device, k_page);
  CHECK(ioctl(fd, XIO_KMOD_MEMORY, &a) == 0);
}

void no_queues(const xio_kmod_pci& device) {
  const descriptor fd = open_module();
  xio_kmod_queue_pair q{};
  q.device = device;
  q.sq_entries = q.cq_entries = 2;
  REFUSED(ioctl(fd, XIO_KMOD_QUEUE_PAIR, &q), EOPNOTSUPP);
  xio_kmod_identify i{};
  i.device = device;
  i.cns = 1;
  REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &i), EOPNOTSUPP);
  i.cns = 3;
  REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &i), EINVAL);
}

}  // namespace

void try_calls(const std::string& bdf, bool translated) {
  const xio_kmod_pci device = device_of(bdf);
  info();
  bad_devices(device);
  pins(device, translated);
  bad_pins(device);
  memory(device, translated);
  memory_limit(device);
  no_queues(device);
}

// Of the node's group, and no more.
void try_unprivileged(const std::string& bdf, bool translated) {
  const xio_kmod_pci device = device_of(bdf);
  const buffer b(4 * k_page);
  CHECK(setgroups(0, nullptr) == 0 && setgid(44) == 0 && setuid(65534) == 0);
  const descriptor fd = open_module();
  xio_kmod_info i{};
  CHECK(ioctl(fd, XIO_KMOD_INFO, &i) == 0);
  xio_kmod_pin p = pin_of(device, b.fd());
  xio_kmod_memory m = memory_of(device, k_page);
  if (translated) {
    CHECK(ioctl(fd, XIO_KMOD_PIN, &p) == 0);
    CHECK(ioctl(fd, XIO_KMOD_MEMORY, &m) == 0);
  } else {
    REFUSED(ioctl(fd, XIO_KMOD_PIN, &p), EPERM);
    REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &m), EPERM);
  }
  xio_kmod_queue_pair q{};
  q.device = device;
  REFUSED(ioctl(fd, XIO_KMOD_QUEUE_PAIR, &q), EPERM);
  xio_kmod_identify n{};
  n.device = device;
  REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &n), EPERM);
}

// A leak shows in the guest's counters, or as a guest out of memory: 1.2 GiB of its one.
void try_cycles(const std::string& bdf) {
  const xio_kmod_pci device = device_of(bdf);
  const buffer b(16 * k_page);
  for (int i = 0; i < 600; ++i) {
    const descriptor fd = open_module();
    xio_kmod_memory m = memory_of(device, 2 << 20);
    CHECK(ioctl(fd, XIO_KMOD_MEMORY, &m) == 0);
    xio_kmod_pin p = pin_of(device, b.fd());
    CHECK(ioctl(fd, XIO_KMOD_PIN, &p) == 0);
    p = pin_of(device, b.fd());
    CHECK(ioctl(fd, XIO_KMOD_PIN, &p) == 0);
    void* mapped = map(fd, m.offset, k_page);
    CHECK(mapped != MAP_FAILED);
    if (failures != 0) return;
    *static_cast<volatile int*>(mapped) = i;
    // Half of it is given back by hand, half by the close; a mapping outlives its handle as one that faults.
    if (i % 2 == 0) CHECK(release(fd, m.handle) == 0 && release(fd, p.handle) == 0);
    munmap(mapped, k_page);
  }
}

// Behind an IOMMU. RLIMIT_MEMLOCK (getrlimit(2)) is compared with what all processes of the user hold.
void try_memlock(const std::string& bdf) {
  const xio_kmod_pci device = device_of(bdf);
  const buffer large(64 * k_page), small(8 * k_page);
  const rlimit most{20 * k_page, 20 * k_page};
  CHECK(setrlimit(RLIMIT_MEMLOCK, &most) == 0);
  CHECK(setgroups(0, nullptr) == 0 && setresgid(44, 44, 44) == 0 && setresuid(4711, 4711, 4711) == 0);
  const descriptor fd = open_module();
  descriptor other = open_module();
  xio_kmod_memory m = memory_of(device, 21 * k_page);
  REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &m), ENOMEM);
  xio_kmod_pin p = pin_of(device, large.fd());
  REFUSED(ioctl(fd, XIO_KMOD_PIN, &p), ENOMEM);
  xio_kmod_memory first = memory_of(device, 12 * k_page);
  CHECK(ioctl(fd, XIO_KMOD_MEMORY, &first) == 0);
  // Another open, and pinned buffers, count with it.
  m = memory_of(device, 9 * k_page);
  REFUSED(ioctl(other, XIO_KMOD_MEMORY, &m), ENOMEM);
  p = pin_of(device, small.fd());
  CHECK(ioctl(other, XIO_KMOD_PIN, &p) == 0);
  m = memory_of(device, k_page);
  REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &m), ENOMEM);
  // Another process, too.
  const pid_t child = fork();
  if (child == 0) {
    const descriptor own = open_module();
    xio_kmod_memory a = memory_of(device, k_page);
    _exit(ioctl(own, XIO_KMOD_MEMORY, &a) == -1 && errno == ENOMEM ? 0 : 1);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  // Memory given back counts no more, whether by hand or when an open file ends.
  CHECK(release(fd, first.handle) == 0);
  first = memory_of(device, 12 * k_page);
  CHECK(ioctl(fd, XIO_KMOD_MEMORY, &first) == 0);
  other.reset();
  m = memory_of(device, 8 * k_page);
  CHECK(ioctl(fd, XIO_KMOD_MEMORY, &m) == 0);
  // Refused for another reason, it is not counted.
  CHECK(release(fd, first.handle) == 0);
  for (int i = 0; i < 8; ++i) {
    p = pin_of(device, small.fd());
    p.flags = XIO_KMOD_PIN_DEVICE;
    REFUSED(ioctl(fd, XIO_KMOD_PIN, &p), EREMOTEIO);
  }
  first = memory_of(device, 12 * k_page);
  CHECK(ioctl(fd, XIO_KMOD_MEMORY, &first) == 0);
}

// Registers that are switched off read as all ones, and the device may still reach memory: PCI Local Bus 3.0, 6.2.2,
// command register, bit 1 memory space, bit 2 bus master.
void try_gone(const std::string& bdf) {
  const xio_kmod_pci device = device_of(bdf);
  const descriptor fd = open_module();
  const descriptor config(open(("/sys/bus/pci/devices/" + bdf + "/config").c_str(), O_RDWR | O_CLOEXEC));
  std::uint16_t command = 0;
  CHECK(pread(config, &command, 2, 4) == 2 && (command & 6) == 6);
  const std::uint16_t off = command & ~2;
  CHECK(pwrite(config, &off, 2, 4) == 2);
  char data[4096];
  xio_kmod_identify i{};
  i.device = device;
  i.cns = 1;
  i.data = reinterpret_cast<std::uintptr_t>(data);
  REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &i), EIO);
  CHECK(pread(config, &command, 2, 4) == 2 && (command & 4) == 0);
}

void try_lockdown(const std::string& bdf, bool translated) {
  const xio_kmod_pci device = device_of(bdf);
  const descriptor fd = open_module();
  xio_kmod_queue_pair q{};
  q.device = device;
  REFUSED(ioctl(fd, XIO_KMOD_QUEUE_PAIR, &q), EPERM);
  xio_kmod_identify i{};
  i.device = device;
  REFUSED(ioctl(fd, XIO_KMOD_IDENTIFY, &i), EPERM);
  xio_kmod_memory m = memory_of(device, k_page);
  if (translated)
    CHECK(ioctl(fd, XIO_KMOD_MEMORY, &m) == 0);
  else
    REFUSED(ioctl(fd, XIO_KMOD_MEMORY, &m), EPERM);
}

}  // namespace kmod
