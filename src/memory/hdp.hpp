// SPDX-License-Identifier: MIT
// Decides from facts, once per world, how the host data path (HDP) of this process's GPU is flushed, and why.
// The ways: include/xio/device/impl/hdp.hpp; the table in words: docs/hdp.md.
#pragma once
#include "base/option_words.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::memory {

// The link between a PCIe device and this GPU's memory.
enum class hdp_link {
  none,  // no AMD GPU: the host platform, or a GPU without a host data path
  pcie,  // the GPU is a PCIe device
  xgmi,  // the GPU is linked to its CPUs by xGMI
  apu    // GPU and CPUs share their memory
};

struct hdp_facts {
  std::string arch = "host";       // gpu::arch()
  hdp_link link = hdp_link::none;  //
  bool virtual_machine = false;    // an APU that is passed through shows its memory by a BAR after all
  std::uint64_t page_bytes = 4096;
  bool register_mapped = false;  // this process has the page with the flush register
  bool kernels_store = false;    // and kernels may store to it
  bool large_bar = false;        // the CPU reads and writes all of the GPU's memory
  bool nic = false;              // a queue pair to oneself can be had
  bool sdma = false;             // a copy queue of this very GPU can be had
};

struct hdp_decision {
  dev::hdp_way way;
  dev::hdp_way storage;  // after writes of drives
  std::string reason;    // one sentence
};

// wish: XIO_HDP. Throws XIO_ERR_UNSUPPORTED for a way that was asked for and cannot be, and where `auto` finds none.
hdp_decision decide_hdp(const hdp_facts& facts, option::hdp wish);

// "rdma-read", as XIO_HDP spells it.
const char* hdp_way_name(dev::hdp_way way);
const char* hdp_link_name(hdp_link link);

}  // namespace xio::memory
