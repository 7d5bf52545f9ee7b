// SPDX-License-Identifier: MIT
// XIO_MODEL_FAULTS: what a software NIC does wrong on purpose. docs/faults.md has the grammar.
#pragma once
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "proxy/fault_plan.hpp"
#include "proxy/frame_faults.hpp"

namespace xio::model::rdma {

using namespace xio::proxy;

// Where drop, dup, delay and reorder act: on a fabric's frames, or on ops where there are none.
enum class fault_level { ops, frames };

struct fault_rule {
  enum class kind { drop, twice, swap, delay, error, down, skip, astray, moved, fatal } what = kind::drop;
  double chance = 0;
  std::chrono::microseconds wait{0};
  std::uint64_t nth = 0;  // error, down, skip, astray, fatal; moved: the first registration
  std::uint64_t by = 0;   // bytes that it goes astray; wraps
  outcome how = outcome::ok;
  int pe = -1;              // -1: every
  std::int64_t queue = -1;  // the kth made on its NIC; -1: every
};

struct fault_rules {
  std::uint64_t seed = 1;
  std::vector<fault_rule> rules;
};

// Throws XIO_ERR_CONFIG naming the place in `text`.
fault_rules parse_faults(const std::string& text);

class faults final : public fault_plan, public frame_faults {
 public:
  faults(fault_rules rules, int pe, fault_level level);
  injected_fault next(std::uint32_t number, std::uint64_t nth, const op& o) override;
  bool is_fatal() const override { return fatal_.load(std::memory_order_relaxed); }
  frame_fate next_frame(std::uint32_t number) override;

  // Other memory stands for what is registered, zeroed at first, as long as this lives.
  bool moves_memory() const { return first_moved().has_value(); }
  unsigned char* place_of(void* base, std::uint64_t bytes);

 private:
  std::optional<std::uint64_t> first_moved() const;
  std::uint64_t count_frame(std::uint32_t number);
  bool applies(const fault_rule& r, std::uint32_t number) const;
  bool strikes(std::size_t rule, std::uint32_t number, std::uint64_t count, std::uint64_t turn) const;
  injected_fault delayed(std::uint32_t number, std::uint64_t nth) const;

  const fault_rules rules_;
  const int pe_;
  const fault_level level_;
  std::atomic<bool> fatal_{false};
  std::mutex lock_;                                // several NICs, each in a thread, may share this
  std::map<std::uint32_t, std::uint64_t> frames_;  // of each queue pair, so far
  struct free_memory {
    void operator()(unsigned char* p) const { std::free(p); }
  };
  std::vector<std::unique_ptr<unsigned char, free_memory>> moved_;
  std::uint64_t registered_ = 0;
};

// Null for an empty text. For nic::set_faults and, of the level `frames`, for tcp_settings::faults.
std::unique_ptr<faults> make_faults(const std::string& text, int pe, fault_level level = fault_level::ops);

}  // namespace xio::model::rdma
