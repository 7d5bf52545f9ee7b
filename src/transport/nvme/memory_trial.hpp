// SPDX-License-Identifier: MIT
// Whether a drive reaches the memory that kernels see. Pinning may succeed on other memory: amdgpu moves a buffer into
// system memory for a device that it holds unable to reach the GPU's own (drivers/gpu/drm/amd/amdgpu/amdgpu_dma_buf.c:
// the domain of the pin), and a guest's addresses may lead elsewhere. The drive's blocks stay as they are.
#pragma once
#include <functional>

#include "base/payload.hpp"
#include "transport/nvme/drive_facts.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

// Blocks that do not fit are not tried.
constexpr std::size_t k_trial_bytes = 4096;

// Whole pages of mapped memory that nobody else uses.
struct trial_page {
  unsigned char* base;
  std::uint64_t address;  // on the bus
};

enum class trial_verdict {
  same,       // the drive reads what kernels store, if it can compare, and kernels read what it writes
  different,  // it has completed commands on other memory
  unknown     // it could not be tried
};
struct trial_result {
  trial_verdict verdict;
  std::string why;  // where it is unknown
};

// Runs one command of the drive to its end, with an identifier of its own; returns SCT<<8 | SC. Throws where it does
// not end.
using command_runner = std::function<std::uint32_t(const wire::nvme::sqe&)>;

// Block 0 is read into `known`, memory that both are known to reach, and into `tried`; and compared with `tried`, which
// makes the drive read that. `tried` is stored and read by `payload`: a kernel, where it is a GPU's memory. Throws what
// `run` throws.
trial_result try_memory(const drive_facts& facts, const command_runner& run, const trial_page& known,
                        const trial_page& tried, const payload_agent& payload);

}  // namespace xio::nvme
