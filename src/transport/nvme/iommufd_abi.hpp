// SPDX-License-Identifier: MIT
// What is used of iommufd and of vfio's devices without groups. Debian 12's headers know neither, so numbers and
// layouts are written down here: Linux 6.12, include/uapi/linux/iommufd.h (IOMMUFD_TYPE ';', commands from 0x80) and
// include/uapi/linux/vfio.h (VFIO_TYPE ';', VFIO_BASE 100); Documentation/userspace-api/iommufd.rst says what they do.
// Each structure begins with its size. Names are our own: theirs are there as macros where headers are newer.
#pragma once
#include <linux/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace xio::nvme::iommufd {

constexpr unsigned long k_ioas_alloc = _IO(';', 0x81);
constexpr unsigned long k_ioas_iova_ranges = _IO(';', 0x84);
constexpr unsigned long k_ioas_map = _IO(';', 0x85);
constexpr unsigned long k_ioas_unmap = _IO(';', 0x86);
constexpr unsigned long k_device_bind = _IO(';', 100 + 18);
constexpr unsigned long k_device_attach = _IO(';', 100 + 19);

struct ioas_alloc {
  std::uint32_t size, flags, out_ioas_id;
};
static_assert(sizeof(ioas_alloc) == 12);

struct iova_range {
  std::uint64_t start;
  std::uint64_t last;  // inclusive
};
static_assert(sizeof(iova_range) == 16);

struct ioas_iova_ranges {
  std::uint32_t size, ioas_id;
  std::uint32_t num_iovas;  // in: room; out: how many there are. EMSGSIZE if that is more
  std::uint32_t reserved;
  std::uint64_t allowed_iovas;  // address of iova_range[num_iovas]
  std::uint64_t out_iova_alignment;
};
static_assert(sizeof(ioas_iova_ranges) == 32 && offsetof(ioas_iova_ranges, allowed_iovas) == 16);

constexpr std::uint32_t k_map_fixed_iova = 1, k_map_writeable = 2, k_map_readable = 4;
struct ioas_map {
  std::uint32_t size, flags, ioas_id, reserved;
  std::uint64_t user_va, length, iova;
};
static_assert(sizeof(ioas_map) == 40 && offsetof(ioas_map, user_va) == 16 && offsetof(ioas_map, iova) == 32);

struct ioas_unmap {
  std::uint32_t size, ioas_id;
  std::uint64_t iova;
  std::uint64_t length;  // out: what was unmapped
};
static_assert(sizeof(ioas_unmap) == 24 && offsetof(ioas_unmap, iova) == 8);

struct device_bind {
  std::uint32_t argsz, flags;
  std::int32_t iommufd;
  std::uint32_t out_devid;
};
static_assert(sizeof(device_bind) == 16);

struct device_attach {
  std::uint32_t argsz, flags;
  std::uint32_t pt_id;  // in: the address space; out: the page table that the kernel made for it
};
static_assert(sizeof(device_attach) == 12);

}  // namespace xio::nvme::iommufd
