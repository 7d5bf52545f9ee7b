// SPDX-License-Identifier: MIT
// What the command line of xio-tester says, by endpoint, and who does it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace xio::tools {
class command;
class result_table;
}  // namespace xio::tools

namespace xio::tester {

constexpr int k_exit_failed = 1;         // something was wrong: data, an engine, the environment
constexpr int k_exit_interrupted = 130;  // Ctrl-C before the end

// Flags that stand before or after the endpoint's name.
struct shared_settings {
  bool info = false, list = false;
  int threads = 1;
  std::int64_t delay_ns = 0;
  int memory_mode = 0;
  bool memory_mode_given = false, verbose = false, histogram = false, less_timing = false;
  bool substep_timing = false, mmio_bridge = false, wants_json = false;
  tools::result_table* json = nullptr;  // if it is wanted
};

struct dump_settings {
  std::string path;
  std::int64_t seed = 0;
  std::uint64_t bytes = 0, block_bytes = 512, offset = 0;
  bool i_know = false;
};

struct echo_settings {
  std::uint64_t iterations = 128;
  std::uint32_t doorbell = 0;  // entries of the queue; 0: no doorbell
  bool emulate = false, verify = false;
  std::int64_t seed = 1;
};

struct nvme_settings {
  std::string controller, access = "random";
  std::uint64_t buffer_bytes = std::uint64_t{1} << 20;
  std::uint64_t base_lba = 0;
  std::optional<std::int64_t> seed;  // none: 0, or one of its own where the run verifies what it writes
  std::int64_t reads = 0, writes = 0;
  std::uint32_t queue_id = 0, queue_length = 1024, queues = 1, nsid = 1, lbas_per_io = 1;
  bool infinite = false;
  std::uint64_t batch = 1;  // 0: everything at once
  bool verify = false, written = false, i_know = false;
  std::uint64_t file_bytes = std::uint64_t{64} << 20;
  std::uint32_t block_bytes = 512;
};

struct rdma_settings {
  std::uint64_t iterations = 128;  // 0: without end
  std::string provider, device;
  std::uint32_t sq_depth = 256;
  std::optional<std::uint32_t> cq_depth;  // none: as many as the send queue wants
  std::uint64_t transfer_bytes = 4096;
  std::optional<std::uint32_t> inline_threshold;  // none: the family's
  bool loopback = false, no_loopback = false, server = false, client = false;
  std::string server_host;
  std::uint32_t port = 18515;
  std::uint64_t pingpong_bytes = 64, pingpong_iterations = 100, batch = 1;
  std::uint32_t queues = 1;
  bool infinite = false;
  int gpu = 0;
  bool relaxed_ordering = false;
  std::uint32_t traffic_class = 0;
  bool verify = false;
  std::int64_t seed = 1;
};

enum class sdma_test { p2p, ping_pong, buffer_reuse };

struct sdma_settings {
  std::uint64_t iterations = 128, transfer_bytes = 4096;
  int src_gpu = -1, dst_gpu = -1;
  bool to_host = false, verify = false, use_counter = false, use_flush = false;
};

// Each adds its subcommand with its flags. `settings` must outlive the app.
tools::command add_echo(tools::command& app, echo_settings& settings);
tools::command add_nvme(tools::command& app, nvme_settings& settings);
tools::command add_rdma(tools::command& app, rdma_settings& settings);
tools::command add_sdma(tools::command& app, sdma_settings& settings);

// The sentence that says which flags do not go together, or empty. `at`: the subcommand as it was parsed, which knows
// what was given.
std::string wrong_echo(const tools::command& at, const shared_settings& shared, echo_settings& settings);
std::string wrong_nvme(const shared_settings& shared, nvme_settings& settings);
// A launcher started this process and maybe others, which are not two nodes that each have their own.
bool is_launched(const rdma_settings& settings);
std::string wrong_rdma(const tools::command& at, const shared_settings& shared, rdma_settings& settings);
std::string wrong_sdma(const tools::command& at, const shared_settings& shared, sdma_settings& settings);

void run_list();
// All throw xio::error for what the library refuses; those that are not void return the exit status.
void run_info(const shared_settings& shared);
int run_dump(const dump_settings& settings);
int run_echo(const shared_settings& shared, const echo_settings& settings);
int run_nvme(const shared_settings& shared, const nvme_settings& settings);
int run_rdma(const shared_settings& shared, const rdma_settings& settings);
int run_sdma(const shared_settings& shared, const sdma_settings& settings, sdma_test test);

}  // namespace xio::tester
