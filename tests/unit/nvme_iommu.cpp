// SPDX-License-Identifier: MIT
// Both ways to an address space of drives behind vfio: what the kernel is asked, in which order, and what is said when
// it refuses. tests/vm/nvme.sh has the drives.
#include "played_vfio.hpp"
#include "refusal.hpp"
#include "transport/nvme/iommufd_abi.hpp"
#include "transport/nvme/vfio_iommufd.hpp"
#include "transport/nvme/vfio_type1.hpp"
#if __has_include(<linux/iommufd.h>)
#include <linux/iommufd.h>
#include <linux/vfio.h>
#endif

namespace xio::nvme {
namespace {

using namespace played_vfio;
using test::refusal;

// --- What the kernel is asked ------------------------------------------------------------------------

TEST(type1, asks_in_vfios_order) {
  played k;
  vfio_type1 t(k, k_name);
  EXPECT_EQ(k.asked, (std::vector<std::string>{k_container, line(k_container, get_api_version),
                                               line(k_container, check_extension)}));
  k.asked.clear();
  const std::vector<std::string> group{k_group, line(k_group, group_get_status), line(k_group, group_set_container)};
  {
    const vfio_handles h = t.admit(k_place);
    std::vector<std::string> expected = group;
    expected.push_back(line(k_container, set_iommu));
    expected.push_back(line(k_group, group_get_device_fd));
    EXPECT_PAIRS((k.asked, expected), (k.opened[h.device.get()], "0000:3b:00.0"), (k.still_open(), 3u));
    // The domain is there already for the second, if the first has not just left.
    k.asked.clear();
    const vfio_handles second = t.admit(k_place);
    EXPECT_EQ(k.asked, expected);
  }
  EXPECT_EQ(k.still_open(), 1u);
}

// Linux 6.12, drivers/vfio/container.c: the domain goes with the last group, and the next caller sets it up again; the
// call returns EINVAL as long as the domain is there.
TEST(type1, sets_its_domain_up_again_after_the_last_group) {
  played k;
  vfio_type1 t(k, k_name);
  const auto groups = [&] {
    return std::count_if(k.opened.begin(), k.opened.end(),
                         [](const auto& one) { return one.second == k_group && fcntl(one.first, F_GETFD) >= 0; });
  };
  bool is_set = false;
  k.replies[group_set_container] = [&](int, unsigned long) {
    is_set = is_set && groups() > 1;
    return 0;
  };
  k.replies[set_iommu] = [&](int, unsigned long) { return std::exchange(is_set, true) ? -EINVAL : 0; };
  k.replies[group_get_device_fd] = [&](int, unsigned long) {
    return is_set ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : -EINVAL;
  };
  for (int round = 0; round < 2; ++round) {
    const vfio_handles first = t.admit(k_place);
    const vfio_handles second = t.admit(k_place);
    EXPECT_EQ(groups(), 2);
  }
  // Another refusal stays one.
  const vfio_handles first = t.admit(k_place);
  k.refuse(set_iommu, ENOMEM);
  EXPECT_TRUE(has(refusal(XIO_ERR_IO, [&] { t.admit(k_place); }), "the IOMMU cannot be set up"));
}

// struct vfio_iommu_type1_dma_map: argsz 0, flags 4 (read 1, write 2), vaddr 8, iova 16, size 24; unmap: argsz 0, flags
// 4, iova 8, size 16.
TEST(type1, maps_and_unmaps) {
  played k;
  vfio_type1 t(k, k_name);
  k.replies[type1_map_dma] = [&](int fd, unsigned long a) {
    EXPECT_EQ(k.opened[fd], k_container);
    return u32(a, 0) == 32 && u32(a, 4) == 3 && u64(a, 8) == 0x7f0000001000 && u64(a, 16) == 0x40000 &&
                   u64(a, 24) == 0x3000
               ? 0
               : -EINVAL;
  };
  k.replies[type1_unmap_dma] = [&](int, unsigned long a) {
    return u32(a, 0) == 24 && u32(a, 4) == 0 && u64(a, 8) == 0x40000 && u64(a, 16) == 0x3000 ? 0 : -EINVAL;
  };
  t.map(0x7f0000001000, 0x3000, 0x40000);
  EXPECT_EQ(t.unmap(0x40000, 0x3000), 0);
  k.refuse(type1_unmap_dma, EFAULT);
  EXPECT_EQ(t.unmap(0x40000, 0x3000), EFAULT);
}

// struct vfio_iommu_type1_info: argsz 0, flags 4 (capabilities 2), page sizes 8, first capability 16. Capability 1 has
// ranges.
TEST(type1, reads_a_long_reply_at_the_second_try) {
  played k;
  vfio_type1 t(k, k_name);
  k.replies[type1_get_info] = [](int, unsigned long a) {
    const bool room = u32(a, 0) >= 64;
    put<std::uint32_t>(a, 0, 64);
    if (!room) return 0;
    put<std::uint32_t>(a, 4, 2);
    put<std::uint32_t>(a, 16, 32);
    put<std::uint16_t>(a, 32, 1);
    put<std::uint16_t>(a, 34, 1);
    put<std::uint32_t>(a, 36, 0);
    put<std::uint32_t>(a, 40, 1);
    put<std::uint64_t>(a, 48, 0x1000);
    put<std::uint64_t>(a, 56, 0x7fffff);
    return 0;
  };
  const auto r = t.ranges(k_place);
  ASSERT_EQ(r.size(), 1u);
  EXPECT_PAIRS((r[0].first, 0x1000u), (r[0].last, 0x7fffffu));
}

TEST(iommufd_way, asks_in_iommufds_order) {
  played k;
  vfio_iommufd t(k, k_name);
  EXPECT_EQ(k.asked, (std::vector<std::string>{k_iommu, line(k_iommu, ioas_alloc)}));
  k.asked.clear();
  {
    const vfio_handles h = t.admit(k_place);
    EXPECT_EQ(k.asked,
              (std::vector<std::string>{k_cdev, line(k_cdev, device_bind_iommufd), line(k_cdev, device_attach_pt)}));
    EXPECT_EQ(k.opened[h.device.get()], k_cdev);
    EXPECT_LT(h.group.get(), 0);
    // The address space is there already for the second.
    const vfio_handles second = t.admit({"nvme:0000:3c:00.0/1", "0000:3c:00.0", 18, "/dev/vfio/devices/vfio4"});
    EXPECT_PAIRS((k.opened[second.device.get()], "/dev/vfio/devices/vfio4"), (k.still_open(), 3u));
  }
  EXPECT_EQ(k.still_open(), 1u);
}

// struct iommu_ioas_map: size 0, flags 4 (fixed 1, write 2, read 4), ioas 8, reserved 12, address 16, length 24, iova
// 32; unmap: size 0, ioas 4, iova 8, length 16.
TEST(iommufd_way, maps_and_unmaps) {
  played k;
  vfio_iommufd t(k, k_name);
  k.replies[ioas_map] = [&](int fd, unsigned long a) {
    EXPECT_EQ(k.opened[fd], k_iommu);
    return u32(a, 0) == 40 && u32(a, 4) == 7 && u32(a, 8) == 42 && u32(a, 12) == 0 && u64(a, 16) == 0x7f0000001000 &&
                   u64(a, 24) == 0x3000 && u64(a, 32) == 0x40000
               ? 0
               : -EINVAL;
  };
  k.replies[ioas_unmap] = [&](int, unsigned long a) {
    return u32(a, 0) == 24 && u32(a, 4) == 42 && u64(a, 8) == 0x40000 && u64(a, 16) == 0x3000 ? 0 : -ENOENT;
  };
  t.map(0x7f0000001000, 0x3000, 0x40000);
  EXPECT_PAIRS((t.unmap(0x40000, 0x3000), 0), (t.unmap(0x40000, 0x2000), ENOENT));
}

// struct iommu_ioas_iova_ranges: size 0, ioas 4, number 8, reserved 12, address of the list 16, alignment 24.
TEST(iommufd_way, reads_as_many_addresses_as_there_are) {
  played k;
  vfio_iommufd t(k, k_name);
  constexpr std::uint32_t there = 50;
  k.replies[ioas_iova_ranges] = [&](int, unsigned long a) {
    EXPECT_TRUE(u32(a, 0) == 32 && u32(a, 4) == 42 && u32(a, 12) == 0);
    const std::uint32_t room = u32(a, 8);
    put<std::uint32_t>(a, 8, there);
    put<std::uint64_t>(a, 24, 4096);
    for (std::uint32_t i = 0; i < std::min(room, there); ++i) {
      put<std::uint64_t>(u64(a, 16), i * 16, i * 0x10000);
      put<std::uint64_t>(u64(a, 16), i * 16 + 8, i == 7 ? 0 : i * 0x10000 + 0xfff);  // the eighth is none
    }
    return room < there ? -EMSGSIZE : 0;
  };
  const auto r = t.ranges(k_place);
  ASSERT_EQ(r.size(), there - 1);
  EXPECT_PAIRS((r[0].first, 0u), (r.back().first, 49 * 0x10000u), (r.back().last, 49 * 0x10000u + 0xfff));
}

TEST(iommufd_way, does_not_believe_every_reply) {
  played k;
  vfio_iommufd t(k, k_name);
  int calls = 0;
  std::uint32_t number = 0xffffffff;
  int status = -EMSGSIZE;
  k.replies[ioas_iova_ranges] = [&](int, unsigned long a) {
    ++calls;
    put<std::uint32_t>(a, 8, number);
    return status;
  };
  EXPECT_TRUE(has(refusal(XIO_ERR_IO, [&] { t.ranges(k_place); }), "does not tell which addresses"));
  EXPECT_EQ(calls, 1);
  number = 17;  // and one more than there is room for, for ever
  k.replies[ioas_iova_ranges] = [&](int, unsigned long a) {
    ++calls;
    put<std::uint32_t>(a, 8, u32(a, 8) + 1);
    return -EMSGSIZE;
  };
  refusal(XIO_ERR_IO, [&] { t.ranges(k_place); });
  EXPECT_EQ(calls, 3);
  k.replies[ioas_iova_ranges] = [](int, unsigned long a) {
    put<std::uint32_t>(a, 8, 1000);
    return 0;
  };
  EXPECT_TRUE(has(refusal(XIO_ERR_IO, [&] { t.ranges(k_place); }), "more than there is room for"));
  k.replies[ioas_iova_ranges] = [](int, unsigned long a) {
    put<std::uint32_t>(a, 8, 0);
    put<std::uint64_t>(a, 24, 1 << 21);
    return 0;
  };
  EXPECT_TRUE(has(refusal(XIO_ERR_UNSUPPORTED, [&] { t.ranges(k_place); }), "2097152 bytes"));
}

// Numbers and layouts, where the machine's own headers have them.
TEST(iommufd_way, has_the_kernels_numbers) {
  EXPECT_PAIRS((iommufd::k_ioas_alloc, ioas_alloc), (iommufd::k_ioas_iova_ranges, ioas_iova_ranges),
               (iommufd::k_ioas_map, ioas_map), (iommufd::k_ioas_unmap, ioas_unmap),
               (iommufd::k_device_bind, device_bind_iommufd), (iommufd::k_device_attach, device_attach_pt));
#ifdef IOMMU_IOAS_MAP
  EXPECT_PAIRS((iommufd::k_ioas_alloc, IOMMU_IOAS_ALLOC), (iommufd::k_ioas_iova_ranges, IOMMU_IOAS_IOVA_RANGES),
               (iommufd::k_ioas_map, IOMMU_IOAS_MAP), (iommufd::k_ioas_unmap, IOMMU_IOAS_UNMAP),
               (sizeof(iommufd::ioas_alloc), sizeof(iommu_ioas_alloc)),
               (sizeof(iommufd::ioas_iova_ranges), sizeof(iommu_ioas_iova_ranges)),
               (sizeof(iommufd::ioas_map), sizeof(iommu_ioas_map)),
               (sizeof(iommufd::ioas_unmap), sizeof(iommu_ioas_unmap)));
#endif
#if defined IOMMU_IOAS_MAP && defined VFIO_DEVICE_BIND_IOMMUFD
  EXPECT_EQ(iommufd::k_device_bind, VFIO_DEVICE_BIND_IOMMUFD);
  EXPECT_EQ(iommufd::k_device_attach, VFIO_DEVICE_ATTACH_IOMMUFD_PT);
  EXPECT_EQ(sizeof(iommufd::device_bind), sizeof(vfio_device_bind_iommufd));
  EXPECT_EQ(sizeof(iommufd::device_attach), sizeof(vfio_device_attach_iommufd_pt));
#endif
}

// --- What is said when it refuses --------------------------------------------------------------------

// No machine has the group whose other devices are looked for.
const vfio_place k_alone{k_name, "0000:3b:00.0", 999999, k_cdev};

// Returns the sentence that refuses a device, and checks that nothing of the device is open after it.
template <class Way>
std::string not_admitted(xio_status_t status, const std::function<void(played&)>& change,
                         const vfio_place& place = k_place) {
  played k;
  change(k);
  Way way(k, k_name);
  const std::string why = refusal(status, [&] { way.admit(place); });
  EXPECT_EQ(k.still_open(), 1u) << why;
  EXPECT_TRUE(has(why, k_name)) << why;
  return why;
}

struct mistake {
  xio_status_t status;
  const char* words;
  std::function<void(played&)> spoil;
};

TEST(type1, refuses_in_one_sentence) {
  played k;
  k.absent[k_container] = ENOENT;
  EXPECT_TRUE(has(refusal(XIO_ERR_UNSUPPORTED, [&] { vfio_type1 t(k, k_name); }), "modprobe vfio-pci"));
  k.absent.clear();
  k.replies[check_extension] = [](int, unsigned long) { return 0; };
  EXPECT_TRUE(has(refusal(XIO_ERR_UNSUPPORTED, [&] { vfio_type1 t(k, k_name); }), "modprobe vfio_iommu_type1"));
  EXPECT_EQ(k.still_open(), 0u);

  const mistake all[] = {
      {XIO_ERR_IO, "no permission for /dev/vfio/17; chown", [](auto& o) { o.absent[k_group] = EACCES; }},
      {XIO_ERR_STATE, "open in another process", [](auto& o) { o.absent[k_group] = EBUSY; }},
      {XIO_ERR_UNSUPPORTED, "there is no /dev/vfio/17", [](auto& o) { o.absent[k_group] = ENOENT; }},
      {XIO_ERR_STATE, "IOMMU group 17 is not viable",
       [](auto& o) { o.replies[group_get_status] = [](int, unsigned long) { return 0; }; }},
      {XIO_ERR_IO, "open it alone", [](auto& o) { o.refuse(group_set_container, EINVAL); }},
      {XIO_ERR_UNSUPPORTED, "remap interrupts", [](auto& o) { o.refuse(set_iommu, EPERM); }},
      {XIO_ERR_IO, "does not give 0000:3b:00.0", [](auto& o) { o.refuse(group_get_device_fd, ENODEV); }}};
  for (const auto& m : all) EXPECT_PRED2(has, not_admitted<vfio_type1>(m.status, m.spoil), m.words);
}

TEST(iommufd_way, refuses_in_one_sentence) {
  played k;
  k.absent[k_iommu] = ENOENT;
  EXPECT_TRUE(has(refusal(XIO_ERR_UNSUPPORTED, [&] { vfio_iommufd t(k, k_name); }),
                  "there is no /dev/iommu; modprobe iommufd"));
  k.absent[k_iommu] = EACCES;
  EXPECT_TRUE(has(refusal(XIO_ERR_IO, [&] { vfio_iommufd t(k, k_name); }), "no permission for /dev/iommu; chown"));
  k.absent.clear();
  k.refuse(ioas_alloc, ENOMEM);
  EXPECT_TRUE(has(refusal(XIO_ERR_IO, [&] { vfio_iommufd t(k, k_name); }), "gives no address space"));
  EXPECT_EQ(k.still_open(), 0u);

  const mistake all[] = {
      {XIO_ERR_IO, "no permission for /dev/vfio/devices/vfio3", [](auto& o) { o.absent[k_cdev] = EACCES; }},
      {XIO_ERR_UNSUPPORTED, "XIO_VFIO_IOMMU=type1", [](auto& o) { o.absent[k_cdev] = ENOENT; }},
      {XIO_ERR_IO, "open it alone", [](auto& o) { o.refuse(device_attach_pt, EADDRINUSE); }}};
  for (const auto& m : all) EXPECT_PRED2(has, not_admitted<vfio_iommufd>(m.status, m.spoil), m.words);
  const mistake not_bound[] = {
      {XIO_ERR_STATE, "open in another process", [](auto& o) { o.refuse(device_bind_iommufd, EBUSY); }},
      {XIO_ERR_STATE, "open in another process", [](auto& o) { o.refuse(device_bind_iommufd, EINVAL); }},
      {XIO_ERR_STATE, "interrupt remapping", [](auto& o) { o.refuse(device_bind_iommufd, EPERM); }},
      {XIO_ERR_IO, "cannot be bound", [](auto& o) { o.refuse(device_bind_iommufd, ENODEV); }}};
  for (const auto& m : not_bound) EXPECT_PRED2(has, not_admitted<vfio_iommufd>(m.status, m.spoil, k_alone), m.words);

  played other;
  vfio_iommufd t(other, k_name);
  const vfio_place without_file{k_name, "0000:3b:00.0", 17, ""};
  EXPECT_TRUE(has(refusal(XIO_ERR_UNSUPPORTED, [&] { t.admit(without_file); }), "CONFIG_VFIO_DEVICE_CDEV"));
}

TEST(both_ways, say_why_memory_is_not_pinned) {
  played k;
  vfio_type1 a(k, k_name);
  vfio_iommufd b(k, k_name);
  for (vfio_iommu* way : std::initializer_list<vfio_iommu*>{&a, &b}) {
    const auto refused = [&](xio_status_t status, int why) {
      k.refuse(type1_map_dma, why);
      k.refuse(ioas_map, why);
      return refusal(status, [&] { way->map(0x1000, 0x1000, 0x40000); });
    };
    EXPECT_TRUE(has(refused(XIO_ERR_NO_MEMORY, ENOMEM), "ulimit -l"));
    EXPECT_TRUE(has(refused(XIO_ERR_IO, EFAULT), "take memory that this process may write"));
  }
  EXPECT_TRUE(has(refusal(XIO_ERR_IO, [&] { b.map(0x1000, 0x1000, 0x40000); }), "XIO_VFIO_IOMMU=type1"));
}
}  // namespace
}  // namespace xio::nvme
