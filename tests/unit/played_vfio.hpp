// SPDX-License-Identifier: MIT
// The kernel behind vfio, played: it records each request, and replies as a test says. Requests and layouts are those
// of Linux 6.12, include/uapi/linux/{vfio,iommufd}.h, written as numbers.
#pragma once
#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "transport/nvme/vfio_iommu.hpp"

namespace xio::nvme::played_vfio {

constexpr const char* k_container = "/dev/vfio/vfio";
constexpr const char* k_iommu = "/dev/iommu";
constexpr const char* k_group = "/dev/vfio/17";
constexpr const char* k_cdev = "/dev/vfio/devices/vfio3";

// _IO(';', number): no size, no direction.
enum : unsigned long {
  get_api_version = 0x3b64,
  check_extension = 0x3b65,
  set_iommu = 0x3b66,
  group_get_status = 0x3b67,
  group_set_container = 0x3b68,
  group_get_device_fd = 0x3b6a,
  type1_get_info = 0x3b70,
  type1_map_dma = 0x3b71,
  type1_unmap_dma = 0x3b72,
  device_bind_iommufd = 0x3b76,
  device_attach_pt = 0x3b77,
  ioas_alloc = 0x3b81,
  ioas_iova_ranges = 0x3b84,
  ioas_map = 0x3b85,
  ioas_unmap = 0x3b86,
};

template <class T>
T at(unsigned long argument, std::size_t offset) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(argument) + offset, sizeof value);
  return value;
}
template <class T>
void put(unsigned long argument, std::size_t offset, T value) {
  std::memcpy(reinterpret_cast<char*>(argument) + offset, &value, sizeof value);
}
constexpr auto u32 = at<std::uint32_t>;
constexpr auto u64 = at<std::uint64_t>;

// Descriptors are real ones, so that it shows who closes them.
class played : public vfio_calls {
 public:
  played() {
    replies[get_api_version] = [](int, unsigned long) { return 0; };
    replies[check_extension] = [](int, unsigned long type) { return type == 3 ? 1 : 0; };  // VFIO_TYPE1v2_IOMMU
    replies[set_iommu] = [](int, unsigned long type) { return type == 3 ? 0 : -EINVAL; };
    replies[group_get_status] = [](int, unsigned long a) {
      put<std::uint32_t>(a, 4, 1);  // viable
      return 0;
    };
    replies[group_set_container] = [this](int, unsigned long a) {
      return opened[at<int>(a, 0)] == k_container ? 0 : -EBADF;
    };
    replies[group_get_device_fd] = [this](int, unsigned long a) { return give(reinterpret_cast<const char*>(a)); };
    replies[type1_map_dma] = replies[type1_unmap_dma] = [](int, unsigned long) { return 0; };
    replies[ioas_alloc] = [](int, unsigned long a) {
      put<std::uint32_t>(a, 8, 42);
      return u32(a, 0) == 12 && u32(a, 4) == 0 ? 0 : -EINVAL;
    };
    replies[device_bind_iommufd] = [this](int, unsigned long a) {
      return u32(a, 0) == 16 && u32(a, 4) == 0 && opened[at<int>(a, 8)] == k_iommu ? 0 : -EINVAL;
    };
    replies[device_attach_pt] = [](int, unsigned long a) {
      const bool good = u32(a, 0) == 12 && u32(a, 4) == 0 && u32(a, 8) == 42;
      put<std::uint32_t>(a, 8, 43);  // the page table, which is not the address space
      return good ? 0 : -ENOENT;
    };
    replies[ioas_map] = replies[ioas_unmap] = [](int, unsigned long) { return 0; };
    replies[type1_get_info] = [](int, unsigned long) { return 0; };
    replies[ioas_iova_ranges] = [](int, unsigned long a) {
      put<std::uint32_t>(a, 8, 1);
      put<std::uint64_t>(a, 24, 4096);
      put<std::uint64_t>(u64(a, 16), 0, 0x10000);
      put<std::uint64_t>(u64(a, 16), 8, 0xffffffff);
      return 0;
    };
  }

  int open(const std::string& path) override {
    asked.push_back(path);
    if (absent.count(path) == 0) return give(path);
    errno = absent[path];
    return -1;
  }
  int control(int fd, unsigned long request, unsigned long argument) override {
    asked.push_back(opened[fd] + " " + std::to_string(request));
    const auto it = replies.find(request);
    const int result = it == replies.end() ? -ENOTTY : it->second(fd, argument);
    if (result >= 0) return result;
    errno = -result;
    return -1;
  }
  void refuse(unsigned long request, int why) {
    replies[request] = [why](int, unsigned long) { return -why; };
  }
  std::size_t still_open() const {
    std::size_t n = 0;
    for (const auto& one : opened) n += fcntl(one.first, F_GETFD) >= 0 ? 1 : 0;
    return n;
  }

  std::map<unsigned long, std::function<int(int, unsigned long)>> replies;
  std::map<std::string, int> absent;
  std::map<int, std::string> opened;
  std::vector<std::string> asked;

 private:
  int give(const std::string& path) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    opened[fd] = path;
    return fd;
  }
};

inline std::string line(const char* file, unsigned long request) {
  return std::string(file) + " " + std::to_string(request);
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline const vfio_place k_place{"nvme:0000:3b:00.0/1", "0000:3b:00.0", 17, k_cdev};
inline const std::string k_name = k_place.name;

}  // namespace xio::nvme::played_vfio
