// SPDX-License-Identifier: MIT
// The kernels of nic_wave: a device compiler need not read GoogleTest. Each call runs a grid to its end on PE 0's ctx;
// false if the platform says that it failed. `bad` counts statuses other than XIO_OK.
#pragma once
#include "xio/device/impl/view.hpp"

namespace xio::test {

constexpr std::uint64_t k_wave_base = 4096;  // where they work in the heap
constexpr std::uint32_t k_wave_rounds = 8;
constexpr std::uint32_t k_wave_blocks = 3, k_wave_threads = 128, k_wave_lanes = k_wave_blocks * k_wave_threads;

bool run_puts(const dev::ctx_view* c, unsigned char* source, std::uint32_t* bad);
bool run_adds(const dev::ctx_view* c, std::uint64_t* seen, std::uint32_t* bad);
bool run_signals(const dev::ctx_view* c, unsigned char* source, std::uint32_t* bad);

}  // namespace xio::test
