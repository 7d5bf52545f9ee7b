// SPDX-License-Identifier: MIT
#include "tools/xio-verify/stages.hpp"

#include <fmt/format.h>

namespace xio::verify {
namespace {
constexpr const char* k_costs =
    "put_lat get_lat p_lat atomic_lat signal_pingpong put_signal_pingpong barrier put_bw --report_msgrate -s "
    "thread,block";
constexpr const char* k_engine_costs = "put_lat get_lat atomic_lat put_bw --report_msgrate -s thread,block";
}  // namespace

// All deadlines together are less than 20 minutes.
const std::vector<stage>& stages() {
  using enum stage_kind;
  using enum stage_gpus;
  static const std::vector<stage> all{
      {"build", "this build", sections, any, "--version", "", 10, false},
      {"machine", "machine, firmware, drivers", worker, any, "machine", "", 20, false},
      {"preflight", "what engines need, and what is there", sections, any, "", "", 60, false},
      {"atomics", "PCIe AtomicOps on the way", sections, any, "--atomics", "", 20, false},
      {"orders", "orders within a GPU, and with the host", worker, any, "orders", "", 180},
      {"peer-orders", "orders between PEs on GPUs of their own", pes, several, "peer-orders", "", 100},
      {"shared-orders", "orders between PEs on one GPU", pes, one, "peer-orders", "", 80},
      {"auto", "engines as XIO chooses", pes, several, "engine", "auto", 50},
      {"direct", "loads and stores", pes, several, "engine", "direct", 50},
      {"sdma", "copy engines", pes, several, "engine", "sdma", 50},
      {"rdma", "NICs", pes, several, "engine", "rdma", 50},
      {"shared-gpu", "PEs that share one GPU", pes, one, "engine", "auto", 50},
      {"all-gpus", "a PE for each GPU", pes, many, "engine", "auto", 80},
      {"storage", "a file by the software drive", perf, any, "nvme_write nvme_read", "", 40},
      {"drive", "a drive by vfio, read alone", perf, any, "nvme_read", "", 40, true, true},
      {"cost-direct", "cost of ops by loads and stores", perf, several, k_costs, "direct", 90},
      {"cost-sdma", "cost of ops by copy engines", perf, several, k_engine_costs, "sdma", 90},
      {"cost-rdma", "cost of ops by NICs", perf, several, k_costs, "rdma", 90},
  };
  return all;
}

const stage* find_stage(const std::string& name) {
  for (const stage& s : stages())
    if (name == s.name) return &s;
  return nullptr;
}

std::vector<std::string> stage_names() {
  std::vector<std::string> names;
  for (const stage& s : stages()) names.emplace_back(s.name);
  return names;
}

std::string list_of_stages() {
  std::string text;
  for (const stage& s : stages()) text += fmt::format("{:<14} {:<42} {:>4} s\n", s.name, s.title, s.seconds);
  return text;
}

}  // namespace xio::verify
