// SPDX-License-Identifier: MIT
// xio-perf TEST... [options]: latency, bandwidth and message rate of XIO's ops, called by kernels and timed by them.
// The options are those of NVSHMEM's tests; the data moved is compared after every measurement. The manual is
// xio-perf(1).
//
// Exit status: 0; 1 if something failed, wrong data included; 2 for a wrong command line, also where only the world
// tells that it is.
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/error.hpp"
#include "tools/gpus.hpp"
#include "tools/progress.hpp"
#include "tools/refuse.hpp"
#include "tools/standard_streams.hpp"
#include "tools/xio-perf/report.hpp"

namespace {

using namespace xio;
using namespace xio::perf;

constexpr int k_exit_failed = 1;

machine_shape look_at_machine() {
  machine_shape m{std::string(tools::platform()) == "host", 64,
                  UINT32_MAX};  // no plan is refused where xio_init will say why
  int device = 0;
  hipDeviceProp_t about{};
  if (hipGetDevice(&device) == hipSuccess && hipGetDeviceProperties(&about, device) == hipSuccess) {
    m.wave = static_cast<std::uint32_t>(about.warpSize);
    m.workgroups = static_cast<std::uint32_t>(about.multiProcessorCount);
  }
  return m;
}

// Storage is opened by PE 0, as it is measured there, and by test, as each wants its own amount.
std::unique_ptr<drive> open_drive(session& s, const settings& set, const plan& p, const machine_shape& m) {
  if (p.what->how != shape::storage || s.me() != 0) return nullptr;
  std::uint64_t bytes = 0;
  for (const std::uint64_t size : p.sizes) bytes = std::max(bytes, stored_bytes(p, size, m));
  return std::make_unique<drive>(s, set.storage, bytes, std::min(p.ctas, 64u), p.what->id == test_id::nvme_write,
                                 set.direct);
}

void say_left_out(const session& s, const plan& p, const char* why) {
  if (s.me() == 0) std::fprintf(stderr, "xio-perf: %s is left out: %s\n", p.what->name, why);
}

// The plans that this world can run: a test named by itself must be among it, `all` goes without it.
std::vector<plan> possible(const settings& set, const session& s, std::vector<plan> plans) {
  std::erase_if(plans, [&](const plan& p) {
    if (static_cast<int>(p.team) > s.n_pes())
      fail(XIO_ERR_ARG, "{}: --team {} wants as many PEs and there are {}; start more, or give a smaller team",
           p.what->name, p.team, s.n_pes());
    if (p.what->how != shape::pingpong || s.n_pes() == 2) return false;
    const std::string there = s.n_pes() == 1 ? "is one" : fmt::format("are {}", s.n_pes());
    if (!set.all)
      fail(XIO_ERR_ARG, "{} takes two PEs and there {}; start it with mpirun -np 2 or xiorun -n 2", p.what->name,
           there);
    say_left_out(s, p, ("it takes two PEs and there " + there).c_str());
    return true;
  });
  return plans;
}

// All measurements, and what PE 0 prints of them.
class campaign {
 public:
  campaign(session& s, const settings& set, std::vector<plan> plans, const machine_shape& m)
      : s_(s),
        set_(set),
        plans_(std::move(plans)),
        m_(m),
        about_(facts_of(m, s.n_pes())),
        out_(set.format, about_, stdout, set.wide ? 0 : 80) {
    table_ = shape_of(plans_, set.message_rate);
    std::uint64_t total = 0;
    for (const plan& p : plans_) total += p.sizes.size();
    if (s.me() == 0 && isatty(STDERR_FILENO) == 1) shown_.emplace("xio-perf", "measurements", total);
  }

  void run() {
    for (const plan& p : plans_) try {
        run(p);
      } catch (const error& e) {
        // As sdma_copy is on a machine without copy engines. A drive is opened by PE 0 alone: the others would go on.
        if (!set_.all || e.status() != XIO_ERR_UNSUPPORTED || p.what->how == shape::storage) throw;
        say_left_out(s_, p, e.what());
      }
  }

  // False if results could not be written.
  bool finish() {
    shown_.reset();
    if (s_.me() != 0) return true;
    if (set_.format == tools::table_format::table)
      for (const std::string& line : backends_) std::printf("# %s\n", line.c_str());
    const bool written = out_.finish();
    if (!set_.plot.empty()) picture_.draw(set_.plot, about_, emulated_);
    return written;
  }

 private:
  void run(const plan& p) {
    const auto storage = open_drive(s_, set_, p, m_);
    for (const std::uint64_t bytes : p.sizes) {
      if (shown_) shown_->update(done_++);
      const result r = measure(s_, p, bytes, m_, storage.get());
      if (s_.me() == 0) keep(p, r);
    }
  }

  void keep(const plan& p, const result& r) {
    if (shown_) shown_->clear();
    out_.add(row_of(p, r, m_, table_));
    picture_.add(p, r);
    const carrier by = carrier_of(r.route, m_);
    backends_.insert(r.route + ": " + by.backend);
    emulated_ = emulated_ || by.emulated;
  }

  session& s_;
  const settings& set_;
  const std::vector<plan> plans_;
  const machine_shape& m_;
  const tools::facts about_;
  tools::result_table out_;
  table_shape table_;
  plotter picture_;
  std::set<std::string> backends_;
  bool emulated_ = false;
  std::optional<tools::progress> shown_;
  std::uint64_t done_ = 0;
};

// As the launcher says it, if it is one of these: the heap is made before the world's size is known.
int launched_pes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "XIO_TCP_SIZE", "PMI_SIZE"})
    if (const char* size = std::getenv(name); size != nullptr && std::atoi(size) > 0) return std::atoi(size);
  return 1;
}

void run_all(const settings& set, const std::vector<plan>& plans, const machine_shape& m) {
  session s([&](int n_pes) { return need_of(plans, m, n_pes); }, launched_pes());
  campaign c(s, set, possible(set, s, plans), m);
  c.run();
  const bool written = c.finish();
  s.close();  // before that is said: the other PEs have nothing to say of it
  if (!written) fail(XIO_ERR_IO, "the results could not be written");
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
        need_of(plans, m, launched_pes());
      }) != XIO_OK)
    return tools::refuse("xio-perf", last_error());
  const xio_status_t status = xio::guard([&] { run_all(set, plans, m); });
  if (status == XIO_OK) return tools::ended("xio-perf", 0);
  std::fprintf(stderr, "xio-perf: %s\n", last_error());
  std::fflush(nullptr);
  // The other PEs may be waiting for this one: no way back through what waits for them.
  std::_Exit(status == XIO_ERR_ARG ? tools::k_exit_usage : k_exit_failed);
}
