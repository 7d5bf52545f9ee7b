// SPDX-License-Identifier: MIT
// One kernel of a test from its launch to its summary: records, progress, Ctrl-C.
#pragma once
#include "gpu/gpu.hpp"
#include "tools/statistics.hpp"
#include "tools/xio-tester/device.hpp"
#include "tools/xio-tester/recorder.hpp"
#include "tools/xio-tester/settings.hpp"

namespace xio::tester {

// Ctrl-C: the first asks the kernel to come to an end, so that there is a summary; the second ends the program.
// While one lives, SIGINT and SIGTERM set the word, which the kernel looks at. One at a time.
class stop_on_signal {
 public:
  explicit stop_on_signal(std::uint32_t* word);
  ~stop_on_signal();
  stop_on_signal& operator=(stop_on_signal&&) = delete;
};

// Whether a signal came, at any time.
bool was_interrupted();

// More stamps than this are not kept: 64 MiB. A power of two.
constexpr std::uint64_t k_stamps_max = std::uint64_t{8} << 20;

struct run_plan {
  std::string what;              // "nvme-ep write"
  std::uint64_t lanes = 1;       // that keep records
  std::uint64_t ops = 0;         // of all lanes; 0: until Ctrl-C
  std::uint64_t bytes_each = 0;  // 0: ops that carry none
  std::string by;                // "emulated (model io_uring)"
};

class run {
 public:
  run(const shared_settings& shared, run_plan plan);

  // For the kernel. The records are reset.
  recorder view() const;

  // Called after launch() has returned: waits until the kernel has ended. Throws if it could not be launched or died.
  template <class Launch>
  void start(Launch&& launch) {
    begin();
    finish(launch());
  }
  // Further ops of the same test by another kernel, whose lanes go on with their records.
  template <class Launch>
  void go_on(Launch&& launch) {
    watch();
    finish(launch());
  }
  // For a test whose other side is threads of the host: begin, then finish with the launch's result.
  void begin();
  void finish(const char* launch_error) { finish(launch_error, kernels_are_done); }
  void finish(const char* launch_error, const std::function<bool()>& is_over);

  // Gives the run the host's own verdicts instead of those of the lanes.
  void judge(const lane_record& found) { found_ = found; }
  // How many ops the verdicts prove, of how many. Without it they prove each that was done.
  void proves(std::uint64_t ops, std::uint64_t of) { proven_ = {ops, of}; }
  // Whether an op ended with an error.
  bool failed() const { return wrong_lane() != nullptr; }

  // Prints what was measured and what was wrong. False if anything was.
  bool print(bool verified) const;

  std::uint64_t done() const;
  double seconds() const { return seconds_; }

 private:
  const lane_record& lane(std::uint64_t i) const { return lanes_.as<lane_record>()[i]; }
  tools::statistics latency() const;
  std::pair<std::uint64_t, std::uint64_t> proven() const;
  void watch();
  lane_record totals() const;  // sums of all lanes, and the first block that was wrong
  const lane_record* wrong_lane() const;
  std::string failure() const;
  void print_speed() const;
  void print_latency() const;
  void print_substeps() const;
  bool print_verdicts(bool verified) const;
  void add_to(tools::result_table& json, bool verified) const;

  shared_settings shared_;
  run_plan plan_;
  std::uint64_t stamps_kept_;
  std::optional<lane_record> found_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> proven_;
  gpu::buffer lanes_;
  gpu::buffer stamps_;
  gpu::buffer stop_;
  std::optional<stop_on_signal> watch_;
  double seconds_ = 0;
};

// "emulated (model io_uring)", "proxy over rxe0": what plays the engine whose note begins with `engine`, and, where
// kernels run on CPU threads, that too.
std::string backend_text(const std::string& engine);

}  // namespace xio::tester
