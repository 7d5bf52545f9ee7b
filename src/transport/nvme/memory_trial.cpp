// SPDX-License-Identifier: MIT
#include "transport/nvme/memory_trial.hpp"

#include <cstring>
#include <random>

#include "base/run_clock.hpp"
#include "gpu/gpu.hpp"
#include "memory/hdp_thread.hpp"
#include "transport/nvme/status_text.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

namespace {

using clock = run_clock;

// The part of a block that kernels store and read: a GPU needs a launch for each word.
using words = std::array<std::uint64_t, 8>;

// A command that has ended may be held back by the path to the GPU for a while.
constexpr std::chrono::milliseconds k_until_seen{200};
constexpr std::chrono::microseconds k_trial_pause{50};
// Somebody else may write the block between two commands.
constexpr int k_tries = 3;

// A command that the drive ended with an error, which says nothing of memory.
struct refused_command {
  std::string why;
};

class trial {
 public:
  trial(const drive_facts& facts, const command_runner& run, const trial_page& known, const trial_page& tried,
        const payload_agent& payload)
      : facts_(facts), run_(run), known_(known), tried_(tried), payload_(payload) {}

  trial_result all() {
    for (int left = k_tries;; --left) {
      read_into(known_);
      if (facts_.compares && !drive_reads()) {
        if (left > 1) continue;
        return {trial_verdict::different, ""};
      }
      if (kernels_read()) return {trial_verdict::same, ""};
      if (left == 1) return {trial_verdict::different, ""};
    }
  }

 private:
  std::uint32_t command(w::opcode what, const trial_page& page) {
    return run_(w::make_io(what, 0, facts_.nsid, page.address, 0, 0, 1));
  }
  void read_into(const trial_page& page) {
    const std::uint32_t status = command(w::opcode::read, page);
    if (status != w::k_ok) throw refused_command{"block 0 cannot be read: " + status_text(status)};
  }
  void store(const words& what) {
    for (std::size_t i = 0; i < what.size(); ++i)
      payload_.atomic(tried_.base + i * sizeof what[i], sizeof what[i], atomic_op::swap, what[i], 0);
    payload_.fence();
  }
  words load() const {
    words out;
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = payload_.atomic(tried_.base + i * sizeof out[i], sizeof out[i], atomic_op::fetch, 0, 0);
    return out;
  }
  words known_words() const {
    words out;
    std::memcpy(out.data(), known_.base, sizeof out);
    return out;
  }

  // The same block is the same, and with one word changed it is another. Before the drive writes anything.
  bool drive_reads() {
    payload_.copy(tried_.base, known_.base, facts_.block_bytes);
    words block = known_words();
    store(block);
    if (!is_the_block()) return false;
    block[0] = ~block[0];
    store(block);
    return !is_the_block();
  }

  bool is_the_block() {
    const std::uint32_t status = command(w::opcode::compare, tried_);
    if (status != w::k_ok && status != w::k_compare_failure)
      throw refused_command{"block 0 cannot be compared: " + status_text(status)};
    return status == w::k_ok;
  }

  bool kernels_read() {
    std::random_device source;
    words other;
    for (auto& one : other) one = std::uint64_t{source()} << 32 | source();
    store(other);
    read_into(tried_);
    const words wanted = known_words();
    const auto until = clock::now() + k_until_seen;
    for (;;) {
      if (std::uint32_t* flush = gpu::hdp().flush; flush != nullptr) memory::flush_by_register(flush);
      if (load() == wanted) return true;
      if (clock::now() > until) return false;
      std::this_thread::sleep_for(k_trial_pause);
    }
  }

  const drive_facts& facts_;
  const command_runner& run_;
  const trial_page known_, tried_;
  const payload_agent& payload_;
};

}  // namespace

trial_result try_memory(const drive_facts& facts, const command_runner& run, const trial_page& known,
                        const trial_page& tried, const payload_agent& payload) {
  if (facts.block_bytes > k_trial_bytes)
    return {trial_verdict::unknown, "its blocks are longer than what is kept free for that"};
  try {
    return trial(facts, run, known, tried, payload).all();
  } catch (const refused_command& e) {
    return {trial_verdict::unknown, e.why};
  }
}

}  // namespace xio::nvme
