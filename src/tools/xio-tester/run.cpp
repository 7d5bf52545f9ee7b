// SPDX-License-Identifier: MIT
#include "tools/xio-tester/run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "tools/backends.hpp"
#include "tools/progress.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-tester/latency.hpp"

namespace xio::tester {

namespace {

constexpr auto k_look_pause = std::chrono::milliseconds(1);

std::vector<const lane_record*> all_lanes(const gpu::buffer& lanes, std::uint64_t count) {
  std::vector<const lane_record*> all;
  for (std::uint64_t i = 0; i < count; ++i) all.push_back(lanes.as<lane_record>() + i);
  return all;
}

double us_per_tick() { return 1e3 / static_cast<double>(gpu::ticks_per_ms()); }

const char* name_of(verdict v) {
  switch (v) {
    case verdict::good: return "good";
    case verdict::astray: return "astray";
    case verdict::missing: return "missing";
    case verdict::corrupt: return "corrupt";
  }
  return "";
}

}  // namespace

run::run(const shared_settings& shared, run_plan plan)
    : shared_(shared),
      plan_(std::move(plan)),
      keeps_stamps_(!shared.less_timing && plan_.ops != 0 && plan_.ops <= k_stamps_max),
      lanes_(plan_.lanes * sizeof(lane_record), gpu::place::shared),
      stop_(sizeof(std::uint32_t), gpu::place::shared) {
  if (keeps_stamps_) stamps_ = gpu::buffer(plan_.ops * sizeof(std::uint64_t), gpu::place::shared);
}

recorder run::view() const {
  return recorder{lanes_.as<lane_record>(), keeps_stamps_ ? stamps_.as<u64>() : nullptr, stop_.as<u32>()};
}

std::uint64_t run::done() const {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < plan_.lanes; ++i) sum += __atomic_load_n(&lane(i).done, __ATOMIC_RELAXED);
  return sum;
}

void run::begin() {
  std::memset(lanes_.data(), 0, plan_.lanes * sizeof(lane_record));
  // An earlier phase may have been told to stop.
  *stop_.as<std::uint32_t>() = was_interrupted() ? 1 : 0;
  watch_.emplace(stop_.as<std::uint32_t>());
  if (shared_.verbose) std::printf("%s: begins\n", plan_.what.c_str());
  // A crash later must not lose the lines printed so far.
  std::fflush(stdout);
}

void run::finish(const char* launch_error, const std::function<bool()>& is_over) {
  if (launch_error != nullptr) fail(XIO_ERR_INTERNAL, "{}: the kernel did not start: {}", plan_.what, launch_error);
  {
    tools::progress shown(plan_.what, "ops", plan_.ops, plan_.bytes_each);
    while (!is_over()) {
      std::this_thread::sleep_for(k_look_pause);
      shown.update(done());
    }
  }
  const char* wrong = finish_kernels();
  watch_.reset();
  if (wrong != nullptr) fail(XIO_ERR_INTERNAL, "{}: the kernel died: {}", plan_.what, wrong);
  std::uint64_t first = ~std::uint64_t{0}, last = 0;
  for (std::uint64_t i = 0; i < plan_.lanes; ++i) {
    if (lane(i).ended == 0) continue;
    first = std::min(first, lane(i).began);
    last = std::max(last, lane(i).ended);
  }
  seconds_ = last > first ? static_cast<double>(last - first) * us_per_tick() * 1e-6 : 0;
}

bool run::print(bool verified) const {
  print_speed();
  print_latency();
  if (shared_.substep_timing) print_substeps();
  if (shared_.histogram) std::fputs(histogram(all_lanes(lanes_, plan_.lanes), us_per_tick()).c_str(), stdout);
  const bool right = print_verdicts(verified);
  const bool worked = print_failure();
  std::fflush(stdout);
  return right && worked;
}

void run::print_speed() const {
  const std::uint64_t n = done();
  const bool endless = plan_.ops == 0;
  std::string text =
      fmt::format("{}: {}{} ops", plan_.what, n, endless || n == plan_.ops ? "" : fmt::format(" of {}", plan_.ops));
  if (plan_.bytes_each != 0) text += fmt::format(" of {} bytes", plan_.bytes_each);
  text += fmt::format(" in {:.6f} s", seconds_);
  if (seconds_ > 0) {
    const double rate = static_cast<double>(n) / seconds_;
    text += fmt::format(", {:.0f} ops/s", rate);
    if (plan_.bytes_each != 0) text += ", " + tools::rounded_size(rate * static_cast<double>(plan_.bytes_each)) + "/s";
  }
  if (was_interrupted()) text += ", ended by a signal";
  std::printf("%s\n", text.c_str());
}

void run::print_latency() const {
  const auto lanes = all_lanes(lanes_, plan_.lanes);
  const bool all = keeps_stamps_ && done() == plan_.ops;
  const tools::statistics l =
      all ? summarize(stamps_.as<u64>(), plan_.ops, us_per_tick()) : summarize(lanes, us_per_tick());
  if (l.count == 0) return;
  if (all)
    std::printf("  latency us: min %.3f median %.3f p99 %.3f p99.9 %.3f max %.3f mean %.3f\n", l.min, l.median, l.p99,
                l.p999, l.max, l.mean);
  else
    std::printf("  latency us: min %.3f max %.3f mean %.3f\n", l.min, l.max, l.mean);
}

void run::print_substeps() const {
  double fill = 0, post = 0, wait = 0, check = 0;
  for (std::uint64_t i = 0; i < plan_.lanes; ++i) {
    fill += static_cast<double>(lane(i).fill);
    post += static_cast<double>(lane(i).post);
    wait += static_cast<double>(lane(i).wait);
    check += static_cast<double>(lane(i).check);
  }
  const double each = static_cast<double>(std::max<std::uint64_t>(done(), 1)) / us_per_tick();
  std::printf("  sub-steps us/op: data %.3f, build+enqueue+doorbell %.3f, poll+completion doorbell %.3f, check %.3f\n",
              fill / each, post / each, wait / each, check / each);
}

bool run::print_verdicts(bool verified) const {
  if (!verified) return true;
  std::uint64_t sums[4] = {};
  const lane_record* first = nullptr;
  for (std::uint64_t i = 0; i < plan_.lanes; ++i) {
    const lane_record& r = lane(i);
    for (int v = 0; v < 4; ++v) sums[v] += r.verdicts[v];
    if (r.wrong_verdict != 0 && (first == nullptr || r.wrong_block < first->wrong_block)) first = &r;
  }
  std::printf("  verified: %llu blocks good, %llu astray, %llu missing, %llu corrupt\n",
              static_cast<unsigned long long>(sums[0]), static_cast<unsigned long long>(sums[1]),
              static_cast<unsigned long long>(sums[2]), static_cast<unsigned long long>(sums[3]));
  if (first == nullptr) return sums[0] != 0 || done() == 0;
  const auto kind = static_cast<verdict>(first->wrong_verdict);
  std::printf(
      "  first: block %llu is %s%s\n", static_cast<unsigned long long>(first->wrong_block), name_of(kind),
      kind == verdict::astray ? fmt::format(": the data of block {} is in its place", first->wrong_found).c_str() : "");
  return false;
}

bool run::print_failure() const {
  for (std::uint64_t i = 0; i < plan_.lanes; ++i) {
    const lane_record& r = lane(i);
    if (r.status == XIO_OK) continue;
    std::fprintf(stderr, "xio-tester: %s: op %llu failed: %s\n", plan_.what.c_str(),
                 static_cast<unsigned long long>(r.failed_op), xio_status_name(static_cast<xio_status_t>(r.status)));
    return false;
  }
  if (plan_.ops == 0 || done() == plan_.ops || was_interrupted()) return true;
  std::fprintf(stderr, "xio-tester: %s: %llu of %llu ops came to an end\n", plan_.what.c_str(),
               static_cast<unsigned long long>(done()), static_cast<unsigned long long>(plan_.ops));
  return false;
}

std::string backend_text(const std::string& engine) {
  std::string text = "not opened";
  for (const auto& [name, backend] : tools::opened_backends())
    if (name.rfind(engine, 0) == 0) text = tools::is_model(backend) ? "emulated (" + backend + ")" : backend;
  if (std::string(gpu::name()) == "host") text += ", kernels on CPU threads";
  return text;
}

}  // namespace xio::tester
