// SPDX-License-Identifier: MIT
// A process that has opened the simulated driver, and room in its address space, for tests of the driver's calls.
#pragma once
#include "../gtest.hpp"
#include "amdgpu/driver/kfd_ioctls.hpp"
#include "amdgpu/driver/kfd_uapi.hpp"
#include "amdgpu/driver/process.hpp"
#include "amdgpu/driver/topology.hpp"

namespace amdgpu {

using namespace uapi;

// _IOWR('K', number, Args), spelled out: direction in [31:30], size in [29:16], type in [15:8].
template <class Args>
inline int ask(process& p, u32 number, Args& a) {
  return kfd_ioctl(p, 3u << 30 | static_cast<u32>(sizeof(Args)) << 16 | 'K' << 8 | number, &a);
}

inline settings two_gpus() {
  settings s;
  s.gpus = 2;
  s.memory_mib = 64;
  return s;
}

struct amdgpu_driver : testing::Test {
  explicit amdgpu_driver(const settings& s = two_gpus()) : p(s) {
    for (unsigned gpu = 0; gpu < 2; ++gpu) p.acquire_vm(gpu);
  }
  process p;
  // Address space that the driver may map memory at.
  char* room = static_cast<char*>(mmap(nullptr, 16 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));

  ~amdgpu_driver() override { munmap(room, 16 << 20); }
  u64 at(std::size_t offset) const { return reinterpret_cast<u64>(room + offset); }

  alloc_memory_args allocate(u64 va, u64 bytes, u32 flags, unsigned gpu = 0, int wanted = 0) {
    alloc_memory_args a{va, bytes, 0, 0, gpu_id_of(gpu), flags};
    EXPECT_EQ(ask(p, alloc_memory, a), wanted);
    return a;
  }
  int map(u64 handle, std::initializer_list<u32> ids, u32 number = map_memory) {
    map_memory_args a{handle, reinterpret_cast<u64>(ids.begin()), static_cast<u32>(ids.size()), 0};
    const int failed = ask(p, number, a);
    if (failed == 0) {
      EXPECT_EQ(a.done, ids.size());
    }
    return failed;
  }
};

}  // namespace amdgpu
