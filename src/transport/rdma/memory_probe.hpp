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

// A queue pair from the NIC to itself copies words of the memory to others of it. Both are stored and read by
// `payload`, which is a kernel where the memory is a GPU's, so each direction is seen. me: the own PE.
probe_result probe_memory(const self_write& write, const probed_memory& memory, const payload_agent& payload,
                          std::chrono::milliseconds patience);
probe_result probe_memory(const fabric_visit& visit, int me, const probed_memory& memory, const payload_agent& payload,
                          std::chrono::milliseconds patience);

struct setup;
// Of the heap with one NIC, once its fabric knows its peers. Throws if the memory is another one. name: of the NIC, for
// the sentence.
void check_heap(const setup& s, const self_write& write, const proxy::key_pair& keys, const std::string& name);
void check_heap(const setup& s, const fabric_visit& visit, const proxy::key_pair& keys, const std::string& name);

}  // namespace xio::rdma
