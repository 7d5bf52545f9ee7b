// SPDX-License-Identifier: MIT
// Whether a NIC reaches the memory that kernels see. A registration may succeed on other memory: amdgpu moves a buffer
// into system memory for a device that it holds unable to reach the GPU's own (drivers/gpu/drm/amd/amdgpu/
// amdgpu_dma_buf.c: the domain of the pin), and a guest's addresses may lead elsewhere.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "base/payload.hpp"
#include "proxy/fabric.hpp"

namespace xio::rdma {

// Runs what it is given with the NIC's fabric, under the NIC's lock.
using fabric_visit = std::function<void(const std::function<void(proxy::fabric&)>&)>;

struct probed_memory {
  unsigned char* words;  // k_probe_bytes of registered memory that nobody else uses, at a multiple of 8
  proxy::key_pair keys;
};
constexpr std::size_t k_probe_bytes = 64;

enum class probe_verdict {
  same,       // the NIC reads what kernels store, and kernels read what it writes
  different,  // the NIC has completed a write, and kernels do not see it
  unknown     // it could not be tried, or has not completed
};
struct probe_result {
  probe_verdict verdict;
  std::string why;  // where it is unknown
};

// Copies the first half of the memory to the second by the NIC. Empty, or why that could not be.
using self_write = std::function<std::string(const probed_memory& memory, std::chrono::milliseconds patience)>;
// By a queue pair of the fabric that is connected to itself. me: the own PE.
self_write writer_of(const fabric_visit& visit, int me);

// A queue pair from the NIC to itself copies words of the memory to others of it. Both are stored and read by
// `payload`, which is a kernel where the memory is a GPU's, so each direction is seen. me: the own PE.
probe_result probe_memory(const self_write& write, const probed_memory& memory, const payload_agent& payload,
                          std::chrono::milliseconds patience);
probe_result probe_memory(const fabric_visit& visit, int me, const probed_memory& memory, const payload_agent& payload,
                          std::chrono::milliseconds patience);

struct setup;

// The NICs of an endpoint, as gpu_memory_refusal uses them.
struct probed_nics {
  std::uint32_t count;
  std::function<self_write(std::uint32_t nic)> write;
  std::function<proxy::key_pair(std::uint32_t nic, void* base, std::size_t bytes)> add;  // with all rights
  std::function<void(std::uint32_t nic, const proxy::key_pair&)> remove;
  std::string name;
};
// Why memory of the GPU must not be registered with them, or "". Memory of the library's own is tried in place of what
// will be registered, which may hold data, and is of another kind than the heap. One that cannot be registered is not
// the cause.
std::string gpu_memory_refusal(const setup& s, const probed_nics& nics);
// Throws that sentence where `base` is memory of the GPU.
void refuse_gpu_memory(const std::string& refusal, void* base);

// Of the heap with one NIC, once its fabric knows its peers. Throws if the memory is another one. name: of the NIC, for
// the sentence.
void check_heap(const setup& s, const self_write& write, const proxy::key_pair& keys, const std::string& name);
void check_heap(const setup& s, const fabric_visit& visit, const proxy::key_pair& keys, const std::string& name);

}  // namespace xio::rdma
