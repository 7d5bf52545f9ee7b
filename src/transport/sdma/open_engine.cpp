// SPDX-License-Identifier: MIT
// Which backend plays the copy engine: the GPU's own where it can, else the software engine, and says which and why.
#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "transport/sdma/kfd_engine.hpp"
#include "transport/sdma/model.hpp"

namespace xio::sdma {
namespace {

// Far more than a packet takes, also where another process keeps the engine.
constexpr std::chrono::milliseconds k_trial{5000};

bool has_engines() { return std::string(gpu::name()) == "hip"; }

}  // namespace

std::unique_ptr<kfd_driver> open_kfd(option::sdma_queues_by asked) {
  if (asked == option::sdma_queues_by::hsakmt) return open_hsakmt();
  std::string why;
  try {
    return open_by_ioctls(open_kfd_kernel());
  } catch (const error& e) {
    if (asked == option::sdma_queues_by::kernel || e.status() != XIO_ERR_UNSUPPORTED) throw;
    why = e.what();
  }
  try {
    auto made = open_hsakmt();
    log::info("SDMA: queues by libhsakmt, since {}", why);
    return made;
  } catch (const error& e) {
    fail(e.status(), "{}; and {}", why, e.what());
  }
}

namespace {

// Throws why the GPU's own engines cannot be had.
std::unique_ptr<engine> open_hardware(const sdma_options& o) {
  if (!has_engines())
    fail(XIO_ERR_UNSUPPORTED, "only AMD GPUs give their copy engines to user queues, and this is the {} platform",
         gpu::name());
  return open_kfd_engine(o, open_kfd(o.sdma_queues_by), {gpu::arch(), gpu::identity()}, k_trial);
}

std::unique_ptr<engine> open_software(const sdma_options& o, progress::machine& machine, const payload_agent& payload,
                                      const std::string& why) {
  const software::devices* devices = software::built_in();
  if (devices == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "SDMA: {}, and this build has no software engine; configure without --disable-model, or set XIO_ROUTE=direct",
         why);
  auto made = open_model(*devices, o, machine, payload);
  // Where the GPU has engines of its own, software in their place is slow, and a surprise.
  const bool surprise = has_engines() && o.backend == option::backend::automatic;
  log::line(surprise ? log::level::warn : log::level::info, "SDMA: {}, since {}", made->backend(), why);
  return made;
}

}  // namespace

std::unique_ptr<engine> open_engine(const sdma_options& o, progress::machine& machine, const payload_agent& payload) {
  if (o.backend == option::backend::model) return open_software(o, machine, payload, "XIO_BACKEND=model asks for it");
  try {
    auto made = open_hardware(o);
    log::info("SDMA: {}", made->backend());
    return made;
  } catch (const error& e) {
    if (o.backend == option::backend::hw)
      fail(e.status(), "XIO_BACKEND=hw: {}; or set XIO_BACKEND=auto or model, or XIO_ROUTE=direct", e.what());
    // A setting of the user that cannot be satisfied is an error: another engine would hide it.
    if (e.status() == XIO_ERR_CONFIG) throw;
    if (has_engines() && o.route == XIO_ROUTE_SDMA)
      fail(e.status(),
           "XIO_ROUTE=sdma asks for the GPU's copy engines: {}; or set XIO_ROUTE=auto or direct, or XIO_BACKEND=model "
           "for the software engine",
           e.what());
    return open_software(o, machine, payload, e.what());
  }
}

}  // namespace xio::sdma
