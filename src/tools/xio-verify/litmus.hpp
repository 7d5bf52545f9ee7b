// SPDX-License-Identifier: MIT
// Litmus tests of the orders that XIO's device code relies on: two or three parties, each a workgroup or a thread of
// the host, that store and load a few words of chosen kinds of memory. A run is one instance with words of its own; the
// outcome is what parties have read.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace xio::verify {

enum class litmus : int {
  // clang-format off
  pass_by_store, pass_by_add, pass_by_fence, pass_to_get, pass_unordered, pass_in_gpu_by_store,
  pass_in_gpu_by_add, pass_on, pass_on_unordered, store_buffering, store_buffering_unordered, load_buffering,
  load_buffering_dependent, load_buffering_unordered, coherence, adds, adds_in_gpu
  // clang-format on
};
constexpr int k_litmus_count = static_cast<int>(litmus::adds_in_gpu) + 1;

struct litmus_facts {
  const char* test;
  const char* way;         // how the order is made
  const char* stands_for;  // what of XIO relies on it
  std::uint32_t parties;
  bool control;  // no order is asked for: the weak outcome is allowed, and shows that the test could see it
  bool in_gpu;   // orders of agent scope: for parties on one GPU
  bool atomics;  // read-modify-writes
};
const litmus_facts& facts_of(litmus t);

constexpr std::uint32_t k_parties_max = 3;
constexpr std::uint32_t k_words_per_line = 16;  // 128 bytes, the longest cache line of these GPUs
constexpr std::uint32_t k_entry_words = 8;      // a ring's entry of 64 bytes

// The argument of every party. Pointers are as this process sees the memory; all of it is zero at the start.
struct litmus_work {
  std::uint64_t* data;               // a line for each instance
  std::uint64_t* flags;              // two lines for each instance
  std::uint64_t* gate;               // a line for each party, and one that says that somebody gave up
  std::uint64_t* registers;          // [party][instance]: 1 + what it read; 0 says that it did not come so far
  std::uint64_t* scratch;            // for workgroups that only make traffic; may be null
  std::uint64_t gpu_ticks, host_ns;  // the longest wait
  std::uint32_t instances, scratch_words;
};
constexpr std::uint64_t data_words(std::uint64_t instances) { return instances * k_words_per_line; }
constexpr std::uint64_t flag_words(std::uint64_t instances) { return instances * 2 * k_words_per_line; }
constexpr std::uint64_t k_gate_words = (k_parties_max + 1) * k_words_per_line;
constexpr std::uint64_t register_words(std::uint64_t instances) { return instances * k_parties_max; }

// Plays the parties whose bits are set, those of `on_gpu` as workgroups and those of `on_host` as threads of the host,
// and waits for them. Returns null, or what the GPU's runtime said.
const char* play(litmus t, const litmus_work& work, std::uint32_t on_gpu, std::uint32_t on_host, std::uint32_t traffic);

// The outcomes of some instances.
struct litmus_result {
  std::uint64_t runs = 0, not_run = 0, weak = 0;  // weak: outcomes that an order forbids
  std::map<std::string, std::uint64_t> outcomes;
};
void count(litmus t, const std::uint64_t* registers, std::uint32_t instances, litmus_result& to);

}  // namespace xio::verify
