// SPDX-License-Identifier: MIT
// Which of a GPU's partitions a HIP device is. Included by hip.hip only, after hip_memory.hpp.
#pragma once
#include <hip/hip_runtime.h>

#include <cstddef>
#include <map>
#include <mutex>

#include "topology/kfd_node.hpp"

namespace xio::gpu::hw {

namespace {

// The HSA runtime's node of the agent that owns some memory (hsa_ext_amd.h: hsa_amd_pointer_info_t to agentOwner, and
// HSA_AMD_AGENT_INFO_DRIVER_NODE_ID). The layout has only grown at its end, and `size` says how far it is known.
struct owner_info {
  std::uint32_t size;
  std::uint32_t type;
  void *seen_by_agent, *seen_by_host;
  std::size_t bytes;
  void* user;
  std::uint64_t agent;
};
constexpr int k_node_of_agent = 0xA004;

constexpr std::uint32_t k_of_other_process = 4;  // HSA_EXT_POINTER_TYPE_IPC

std::optional<owner_info> owner_of(const void* memory) {
  using pointer_info = int (*)(const void*, owner_info*, void*, void*, void*);
  static const auto ask = find_call<pointer_info>("hsa_amd_pointer_info");
  owner_info i{};
  i.size = sizeof i;
  if (ask == nullptr || ask(memory, &i, nullptr, nullptr, nullptr) != 0) return {};
  return i;
}

std::optional<std::uint64_t> agent_of(const void* memory) {
  const auto owner = owner_of(memory);
  if (!owner || owner->agent == 0) return {};
  return owner->agent;
}

// Memory that another process shares, which is mapped. HIP 5.7 attaches it once more for the GPU that it is asked on,
// by a handle that it no longer has, and says that memory is short.
location locate_shared(const void* p) {
  location l;
  const auto owner = owner_of(p);
  if (!owner || owner->type != k_of_other_process) return l;
  l.where = residence::device;
  l.base = owner->seen_by_agent;
  l.bytes = owner->bytes;
  return l;
}

std::optional<std::uint32_t> runtime_node_of(const void* memory) {
  using agent_info = int (*)(std::uint64_t, int, void*);
  static const auto ask = find_call<agent_info>("hsa_agent_get_info");
  const auto agent = agent_of(memory);
  std::uint32_t node = 0;
  if (ask == nullptr || !agent || ask(*agent, k_node_of_agent, &node) != 0) return {};
  return node;
}

std::optional<std::uint32_t> runtime_node(int device) {
  int before = 0;
  void* some = nullptr;
  std::optional<std::uint32_t> node;
  if (hipGetDevice(&before) == hipSuccess && hipSetDevice(device) == hipSuccess &&
      hipMalloc(&some, 4096) == hipSuccess) {
    node = runtime_node_of(some);
    (void)hipFree(some);
  }
  (void)hipSetDevice(before);
  (void)hipGetLastError();
  return node;
}

// name: HIP's. Asking takes memory, so it is done once for each device, and where names do not tell them apart.
std::string identity(int device, const std::string& name) {
  static std::mutex lock;
  static std::map<int, std::string> known;
  const std::lock_guard hold(lock);
  std::string& is = known[device];
  if (!is.empty()) return is;
  auto node = topology::find_named_kfd_node("", name);
  if (!node && topology::find_kfd_node("", topology::pci_function_of("", name)))
    if (const auto number = runtime_node(device)) node = topology::find_runtime_kfd_node("", *number);
  is = node ? node->identity : name;
  return is;
}

}  // namespace

}  // namespace xio::gpu::hw
