// SPDX-License-Identifier: MIT
// xio-perf TEST... [options]: latency, bandwidth and message rate of XIO's ops, called by kernels and timed by them.
// The options are those of NVSHMEM's tests; the data moved is compared after every measurement. The manual is
// xio-perf(1).
//
// Exit status: 0; 1 if something failed, wrong data included; 2 for a wrong command line, also where only the world
// tells that it is.
#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/refuse.hpp"
#include "tools/standard_streams.hpp"
#include "tools/xio-perf/report.hpp"

namespace {

using namespace xio;
using namespace xio::perf;

constexpr int k_exit_failed = 1;

machine_shape look_at_machine() {
  if (gpu::device_count() == 0) gpu::init(-1);  // which says why
  machine_shape m{std::string(gpu::name()) == "host", gpu::wave_size(), 1};
  int device = 0;
  hipDeviceProp_t about{};
  if (hipGetDevice(&device) == hipSuccess && hipGetDeviceProperties(&about, device) == hipSuccess)
    m.workgroups = static_cast<std::uint32_t>(about.multiProcessorCount);
  return m;
}

// Storage is opened by PE 0, as it is measured there, and by test, as each wants its own amount.
std::unique_ptr<drive> open_drive(session& s, const settings& set, const plan& p, const machine_shape& m) {
  if (p.what->how != shape::storage || s.me() != 0) return nullptr;
  std::uint64_t bytes = 0;
  for (const std::uint64_t size : p.sizes) bytes = std::max(bytes, stored_bytes(p, size, m));
  return std::make_unique<drive>(s, set.storage, bytes, std::min(p.ctas, 64u), p.what->id == test_id::nvme_write);
}

void run_all(const settings& set, const std::vector<plan>& plans, const machine_shape& m) {
  session s(need_of(plans, m));
  for (const plan& p : plans)
    if (p.what->how == shape::pingpong && s.n_pes() != 2)
      fail(XIO_ERR_ARG, "{} takes two PEs and there {}; start it with mpirun -np 2 or xiorun -n 2", p.what->name,
           s.n_pes() == 1 ? "is one" : fmt::format("are {}", s.n_pes()));
  const tools::facts about = facts_of(m, s.n_pes());
  tools::result_table out(set.format, about, stdout);
  const table_shape table = shape_of(plans, set.message_rate);
  plotter picture;
  std::set<std::string> backends;
  bool emulated = false;
  for (const plan& p : plans) {
    const auto storage = open_drive(s, set, p, m);
    for (const std::uint64_t bytes : p.sizes) {
      const result r = measure(s, p, bytes, m, storage.get());
      if (s.me() != 0) continue;
      out.add(row_of(p, r, m, table));
      picture.add(p, r);
      const carrier by = carrier_of(r.route, m);
      backends.insert(r.route + ": " + by.backend);
      emulated = emulated || by.emulated;
    }
  }
  if (s.me() == 0) {
    if (set.format == tools::table_format::table)
      for (const std::string& line : backends) std::printf("# %s\n", line.c_str());
    if (!out.finish()) fail(XIO_ERR_IO, "xio-perf: the results could not be written");
    if (!set.plot.empty()) picture.draw(set.plot, about, emulated);
  }
  s.close();
}

}  // namespace

int main(int argc, char** argv) {
  tools::open_standard_streams();
  settings set;
  if (const auto status = parse(argc, argv, set)) return *status;
  std::vector<plan> plans;
  machine_shape m{};
  if (xio::guard([&] { m = look_at_machine(); }) != XIO_OK) {
    std::fprintf(stderr, "xio-perf: %s\n", last_error());
    return k_exit_failed;
  }
  if (xio::guard([&] {
        plans = plans_of(set, m);
        need_of(plans, m);
      }) != XIO_OK)
    return tools::refuse("xio-perf", last_error());
  const xio_status_t status = xio::guard([&] { run_all(set, plans, m); });
  if (status == XIO_OK) return tools::ended("xio-perf", 0);
  std::fprintf(stderr, "xio-perf: %s\n", last_error());
  std::fflush(nullptr);
  // The other PEs may be waiting for this one: no way back through what waits for them.
  std::_Exit(status == XIO_ERR_ARG ? tools::k_exit_usage : k_exit_failed);
}
