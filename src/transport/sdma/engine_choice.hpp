// SPDX-License-Identifier: MIT
// Which copy engine of a GPU a queue is for. Pure; the GPU's facts come from kfd_driver.hpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace xio::sdma {

// Engines of one GPU: [0, engines) are made for PCIe, [engines, engines + xgmi_engines) for xGMI (libhsakmt
// hsakmttypes.h, HsaNodeProperties).
struct engine_facts {
  std::uint32_t engines = 0, xgmi_engines = 0;
  std::uint32_t queues_per_engine = 0;  // 0: not known
  bool by_engine = false;               // a queue can be asked for on one engine (KFD ioctl minor 17 and newer)
  std::uint32_t all() const { return engines + xgmi_engines; }
};

// The way from the GPU to where the copies go.
struct link_facts {
  bool xgmi = false;
  std::uint64_t recommended = 0;  // bit per engine; 0: the kernel does not say
};

// The kernel's kinds of queues.
enum class queue_kind { pcie, xgmi, by_engine };

struct engine_choice {
  queue_kind kind;
  std::uint32_t engine;  // of by_engine
};

// "0,2" or "0xc" -> engine numbers in that order; "" -> none. Throws XIO_ERR_CONFIG.
std::vector<std::uint32_t> parse_engines(const std::string& text);

// Whether a kernel's store to that doorbell rings another one, on gfx942 and gfx950: they look at blocks of 32 bytes,
// engines have 80 bytes each from number 0x100 on, and so the first two of an odd engine lie in a block of the engine
// before (linux amdkfd kfd_device_queue_manager.c, allocate_doorbell; 6.12.113, 7.2.11 and 7.3 leave these out). The
// host's stores arrive.
bool is_lost_doorbell(std::uint64_t address_or_byte);

// Chooses for one queue after the other, and knows how many each engine has.
class engine_chooser {
 public:
  // gpu: its name, for sentences. wanted: XIO_SDMA_ENGINES. Throws XIO_ERR_CONFIG for engines that do not exist and
  // XIO_ERR_UNSUPPORTED where there is none.
  engine_chooser(std::string gpu, const engine_facts& facts, std::vector<std::uint32_t> wanted);

  // The which-th queue over that link; tried: how many of the engines with a free queue the caller has found to be of
  // no use. Throws XIO_ERR_NO_MEMORY when no other has one.
  engine_choice take(const link_facts& link, std::uint32_t which, std::uint32_t tried = 0);
  void give_back(const engine_choice& c);

 private:
  std::uint32_t& used_by(const engine_choice& c);
  std::uint32_t capacity(const engine_choice& c) const;

  const std::string gpu_;
  const engine_facts facts_;
  const std::vector<std::uint32_t> wanted_;
  std::vector<std::uint32_t> used_;  // by engine; then what the kernel placed among PCIe and xGMI engines
};

}  // namespace xio::sdma
