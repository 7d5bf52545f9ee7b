// SPDX-License-Identifier: MIT
#include "tools/xio-tester/run.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>
#include <tuple>

#include "base/error.hpp"
#include "tools/backends.hpp"
#include "tools/progress.hpp"
#include "tools/result_table.hpp"
#include "tools/size_text.hpp"
#include "tools/xio-tester/latency.hpp"

namespace xio::tester {
namespace {

std::atomic<std::uint32_t*> word_to_set{nullptr};
std::atomic<std::int64_t> came_at{0};  // 0: not yet
static_assert(std::atomic<std::uint32_t*>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// A program that ends a job often signals the process and its group, at once: a person means one signal.
constexpr std::int64_t k_same_press_ms = 300;

std::int64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1000000;
}

void on_signal(int) {
  const std::int64_t now = now_ms();
  std::int64_t first = 0;
  if (!came_at.compare_exchange_strong(first, now)) {
    if (now - first > k_same_press_ms) _exit(k_exit_interrupted);
    return;
  }
  if (std::uint32_t* word = word_to_set.load()) __atomic_store_n(word, 1u, __ATOMIC_RELEASE);
}

void handle(void (*how)(int)) {
  struct sigaction action {};
  action.sa_handler = how;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

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

stop_on_signal::stop_on_signal(std::uint32_t* word) {
  word_to_set = word;
  handle(on_signal);
}

stop_on_signal::~stop_on_signal() {
  handle(SIG_DFL);
  word_to_set = nullptr;
}

bool was_interrupted() { return came_at != 0; }

run::run(const shared_settings& shared, run_plan plan)
    : shared_(shared),
      plan_(std::move(plan)),
      stamps_kept_(shared.less_timing ? 0
                   : plan_.ops == 0   ? k_stamps_max
                                      : std::min(plan_.ops, k_stamps_max)),
      lanes_(plan_.lanes * sizeof(lane_record), gpu::place::shared),
      stop_(sizeof(std::uint32_t), gpu::place::shared) {
  if (stamps_kept_ != 0) stamps_ = gpu::buffer(stamps_kept_ * sizeof(std::uint64_t), gpu::place::shared);
}

recorder run::view() const {
  return recorder{lanes_.as<lane_record>(), stamps_kept_ != 0 ? stamps_.as<u64>() : nullptr,
                  stamps_kept_ == k_stamps_max ? k_stamps_max - 1 : ~u64{0}, stop_.as<u32>()};
}

std::uint64_t run::done() const {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < plan_.lanes; ++i) sum += __atomic_load_n(&lane(i).done, __ATOMIC_RELAXED);
  return sum;
}

void run::begin() {
  std::memset(lanes_.data(), 0, plan_.lanes * sizeof(lane_record));
  if (stamps_kept_ != 0) std::memset(stamps_.data(), 0, stamps_kept_ * sizeof(std::uint64_t));
  watch();
  if (shared_.verbose) std::printf("%s: begins\n", plan_.what.c_str());
  // A crash later must not lose the lines printed so far.
  std::fflush(stdout);
}

void run::watch() {
  // An earlier phase may have been told to stop.
  *stop_.as<std::uint32_t>() = was_interrupted() ? 1 : 0;
  watch_.emplace(stop_.as<std::uint32_t>());
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
  seconds_ += last > first ? static_cast<double>(last - first) * us_per_tick() * 1e-6 : 0;
}

bool run::print(bool verified) const {
  print_speed();
  print_latency();
  if (shared_.substep_timing) print_substeps();
  if (shared_.histogram) std::fputs(histogram(all_lanes(lanes_, plan_.lanes), us_per_tick()).c_str(), stdout);
  const bool right = print_verdicts(verified);
  const std::string wrong = failure();
  if (!wrong.empty()) std::fprintf(stderr, "xio-tester: %s: %s\n", plan_.what.c_str(), wrong.c_str());
  std::fflush(stdout);
  if (shared_.json != nullptr) add_to(*shared_.json, verified);
  return right && wrong.empty();
}

// For programs: the same names as xio-perf's, where it has them.
void run::add_to(tools::result_table& json, bool verified) const {
  const lane_record sums = totals();
  const tools::statistics l = latency();
  const double each = static_cast<double>(std::max<std::uint64_t>(done(), 1)) / us_per_tick();
  const std::string wrong = failure();
  std::vector<tools::field> row{{"test", plan_.what}, {"by", plan_.by}, {"bytes", plan_.bytes_each}, {"ops", done()}};
  const auto add = [&row](const char* name, tools::cell is) { row.push_back({name, std::move(is)}); };
  const auto add_if = [&](bool known, const char* name, auto value) {
    add(name, known ? tools::cell(value) : tools::cell());
  };
  add_if(plan_.ops != 0, "ops_wanted", plan_.ops);
  add("seconds", seconds_);
  add_if(seconds_ > 0, "ops_per_s", static_cast<double>(done()) / seconds_);
  add("timed_ops", std::uint64_t{l.count});
  const bool percentiles = stamps_kept_ != 0 && l.count != 0;
  for (const auto& [name, us, known] : {std::tuple{"min_us", l.min, l.count != 0},
                                        {"median_us", l.median, percentiles},
                                        {"p95_us", l.p95, percentiles},
                                        {"p99_us", l.p99, percentiles},
                                        {"p999_us", l.p999, percentiles},
                                        {"p9999_us", l.p9999, percentiles},
                                        {"max_us", l.max, l.count != 0},
                                        {"mean_us", l.mean, l.count != 0}})
    add_if(known, name, us);
  for (const auto& [name, ticks] :
       {std::pair{"data_us", sums.fill}, {"post_us", sums.post}, {"wait_us", sums.wait}, {"check_us", sums.check}})
    add(name, static_cast<double>(ticks) / each);
  add_if(verified, "verified_ops", proven().first);
  for (int v = 0; v < 4; ++v) add_if(verified, name_of(static_cast<verdict>(v)), std::uint64_t{sums.verdicts[v]});
  add_if(!wrong.empty(), "failure", wrong);
  json.add(row);
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

tools::statistics run::latency() const {
  if (stamps_kept_ != 0) return summarize(stamps_.as<u64>(), stamps_kept_, us_per_tick());
  return summarize(all_lanes(lanes_, plan_.lanes), us_per_tick());
}

void run::print_latency() const {
  const tools::statistics l = latency();
  if (l.count == 0) return;
  if (stamps_kept_ != 0)
    std::printf("  latency us: min %.3f median %.3f p95 %.3f p99 %.3f p99.9 %.3f p99.99 %.3f max %.3f mean %.3f%s\n",
                l.min, l.median, l.p95, l.p99, l.p999, l.p9999, l.max, l.mean,
                l.count < done() ? fmt::format(" of the last {} ops", l.count).c_str() : "");
  else
    std::printf("  latency us: min %.3f max %.3f mean %.3f\n", l.min, l.max, l.mean);
}

lane_record run::totals() const {
  lane_record sums{};
  for (std::uint64_t i = 0; i < plan_.lanes; ++i) {
    const lane_record& r = found_ ? *found_ : lane(i);
    sums.fill += lane(i).fill;
    sums.post += lane(i).post;
    sums.wait += lane(i).wait;
    sums.check += lane(i).check;
    if (found_ && i != 0) continue;
    for (int v = 0; v < 4; ++v) sums.verdicts[v] += r.verdicts[v];
    if (r.wrong_verdict == 0 || (sums.wrong_verdict != 0 && r.wrong_block >= sums.wrong_block)) continue;
    sums.wrong_verdict = r.wrong_verdict;
    sums.wrong_block = r.wrong_block;
    sums.wrong_found = r.wrong_found;
  }
  return sums;
}

void run::print_substeps() const {
  const lane_record sums = totals();
  const double each = static_cast<double>(std::max<std::uint64_t>(done(), 1)) / us_per_tick();
  const auto us = [each](u64 ticks) { return static_cast<double>(ticks) / each; };
  std::printf("  sub-steps us/op: data %.3f, build+enqueue+doorbell %.3f, poll+completion doorbell %.3f, check %.3f\n",
              us(sums.fill), us(sums.post), us(sums.wait), us(sums.check));
}

std::pair<std::uint64_t, std::uint64_t> run::proven() const { return proven_.value_or(std::pair{done(), done()}); }

bool run::print_verdicts(bool verified) const {
  if (!verified) return true;
  const lane_record sums = totals();
  std::printf("  verified: %llu blocks good, %llu astray, %llu missing, %llu corrupt; %llu of %llu ops\n",
              static_cast<unsigned long long>(sums.verdicts[0]), static_cast<unsigned long long>(sums.verdicts[1]),
              static_cast<unsigned long long>(sums.verdicts[2]), static_cast<unsigned long long>(sums.verdicts[3]),
              static_cast<unsigned long long>(proven().first), static_cast<unsigned long long>(proven().second));
  if (sums.wrong_verdict == 0) return sums.verdicts[0] != 0 || done() == 0;
  const auto kind = static_cast<verdict>(sums.wrong_verdict);
  std::printf(
      "  first: block %llu is %s%s\n", static_cast<unsigned long long>(sums.wrong_block), name_of(kind),
      kind == verdict::astray ? fmt::format(": the data of block {} is in its place", sums.wrong_found).c_str() : "");
  return false;
}

const lane_record* run::wrong_lane() const {
  for (std::uint64_t i = 0; i < plan_.lanes; ++i)
    if (lane(i).status != XIO_OK) return &lane(i);
  return nullptr;
}

std::string run::failure() const {
  if (const lane_record* r = wrong_lane())
    return fmt::format("op {} failed: {}", r->failed_op, xio_status_name(static_cast<xio_status_t>(r->status)));
  if (plan_.ops == 0 || done() == plan_.ops || was_interrupted()) return "";
  return fmt::format("{} of {} ops came to an end", done(), plan_.ops);
}

std::string backend_text(const std::string& engine) {
  std::string text = "not opened";
  for (const auto& [name, backend] : tools::opened_backends())
    if (name.rfind(engine, 0) == 0) text = tools::is_model(backend) ? "emulated (" + backend + ")" : backend;
  if (std::string(gpu::name()) == "host") text += ", kernels on CPU threads";
  return text;
}

}  // namespace xio::tester
