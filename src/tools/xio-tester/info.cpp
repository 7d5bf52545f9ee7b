// SPDX-License-Identifier: MIT
// --info and --list-endpoints.
#include <cstdio>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/gpus.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-tester/settings.hpp"
#include "xio/xio.h"

namespace xio::tester {

void run_info(const shared_settings& shared) {
  int major = 0, minor = 0, patch = 0;
  xio_version(&major, &minor, &patch);
  std::printf("XIO %d.%d.%d, platform %s%s\n", major, minor, patch, gpu::name(),
              std::string(gpu::name()) == "host" ? ": kernels run on CPU threads, engines are emulated" : "");
  std::vector<tools::gpu_facts> devices;
  if (const char* wrong = tools::list_gpus(devices)) fail(XIO_ERR_UNSUPPORTED, "no device can be used: {}", wrong);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const tools::gpu_facts& d = devices[i];
    std::printf("device %zu: %s (%s)\n  memory %s, %d compute units, waves of %d lanes\n", i, d.name.c_str(),
                d.arch.c_str(), tools::rounded_size(static_cast<double>(d.memory_bytes)).c_str(), d.compute_units,
                d.wave_lanes);
    if (shared.verbose)
      std::printf("  workgroups of up to %d threads and %zu bytes of their own memory\n", d.threads_per_block,
                  d.shared_bytes);
  }
  if (devices.empty()) std::puts("no device");
}

void run_list() {
  std::puts(
      "test-ep  round trips between GPU and host through memory; needs no device\n"
      "nvme-ep  reads and writes of an NVMe drive, or of a file behind a software controller\n"
      "rdma-ep  puts through an RDMA NIC, or through the software NIC\n"
      "sdma-ep  copies by a copy engine, or by the software engine: p2p, ping-pong, buffer-reuse");
}

}  // namespace xio::tester
