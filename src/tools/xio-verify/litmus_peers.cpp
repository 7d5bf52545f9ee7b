// SPDX-License-Identifier: MIT
// Litmus tests between GPUs, or between processes on one: party i is on PE i mod n, and words lie in the symmetric heap
// of PE 0 or of PE 1.

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/member.hpp"
#include "tools/xio-verify/litmus_row.hpp"
#include "tools/xio-verify/worker.hpp"

namespace xio::verify {
namespace {

using tools::member;

constexpr std::uint64_t k_peers_wait_ms = 10000;

struct words_of_peers {
  std::uint64_t *data, *flags, *gate, *registers;
};

// Which PE's heap the words are in.
struct homes {
  int data, flags;
  const char *data_text, *flags_text;
};
constexpr homes k_homes[] = {{1, 1, "heap of PE 1", "heap of PE 1"},
                             {0, 1, "heap of PE 0", "heap of PE 1"},
                             {1, 0, "heap of PE 1", "heap of PE 0"},
                             {0, 0, "heap of PE 0", "heap of PE 0"}};

// Whether XIO does so between PEs: it polls words of its own PE alone, and a PE that stores to another one reads what
// was stored to itself.
bool relies_on(litmus t, const homes& h) {
  switch (t) {
    case litmus::store_buffering:
    case litmus::load_buffering:
    case litmus::load_buffering_dependent: return h.data == 1 && h.flags == 0;
    case litmus::coherence:
    case litmus::adds: return true;
    default: return h.flags == 1;
  }
}

class peers {
 public:
  peers(row_writer& rows, const member& m, const litmus_amount& amount) : rows_(rows), m_(m), amount_(amount) {
    own_.data = m.symmetric<std::uint64_t>(data_words(amount.instances));
    own_.flags = m.symmetric<std::uint64_t>(flag_words(amount.instances));
    own_.gate = m.symmetric<std::uint64_t>(k_gate_words);
    own_.registers = m.symmetric<std::uint64_t>(register_words(amount.instances));
  }

  bool mapped() const { return at(own_.data, 0) != nullptr && at(own_.data, 1) != nullptr; }

  bool try_one(litmus t, const homes& h, const litmus_place& place) {
    const auto batch = [&](litmus_result& r) { return play_batch(t, h, r); };
    if (m_.me() == 0) return add_litmus_row(rows_, t, place, amount_, batch);
    // The others do as many batches, and count nothing.
    litmus_result ignored;
    std::string why;
    for (std::uint32_t i = 0; i < amount_.batches && why.empty(); ++i) why = batch(ignored);
    if (!why.empty()) fail(XIO_ERR_TRANSPORT, "{}", why);
    return true;
  }

 private:
  std::uint64_t* at(std::uint64_t* words, int pe) const {
    return static_cast<std::uint64_t*>(xio_ptr(m_.world(), words, pe));
  }

  void clear() const {
    gpu::fill_zero(own_.data, data_words(amount_.instances) * sizeof(std::uint64_t));
    gpu::fill_zero(own_.flags, flag_words(amount_.instances) * sizeof(std::uint64_t));
    gpu::fill_zero(own_.gate, k_gate_words * sizeof(std::uint64_t));
    gpu::fill_zero(own_.registers, register_words(amount_.instances) * sizeof(std::uint64_t));
    m_.barrier();
  }

  std::uint32_t parties_here(litmus t) const {
    std::uint32_t mask = 0;
    for (std::uint32_t party = 0; party < facts_of(t).parties; ++party)
      if (static_cast<int>(party) % m_.size() == m_.me()) mask |= 1u << party;
    return mask;
  }

  std::string play_batch(litmus t, const homes& h, litmus_result& r) {
    clear();
    const litmus_work w{at(own_.data, h.data),
                        at(own_.flags, h.flags),
                        at(own_.gate, 0),
                        at(own_.registers, 0),
                        nullptr,
                        gpu::ticks_per_ms() * k_peers_wait_ms,
                        k_peers_wait_ms * 1000000,
                        amount_.instances,
                        0};
    const char* wrong = play(t, w, parties_here(t), 0, 0);
    m_.barrier();
    if (wrong != nullptr) return wrong;
    if (m_.me() != 0) return "";
    std::vector<std::uint64_t> registers(register_words(amount_.instances));
    gpu::copy(registers.data(), own_.registers, registers.size() * sizeof registers[0]);
    count(t, registers.data(), amount_.instances, r);
    return "";
  }

  row_writer& rows_;
  const member& m_;
  litmus_amount amount_;
  words_of_peers own_{};
};

// All PEs do the same number of batches, so time does not bound them. PEs that share a GPU may have it by time slices.
litmus_amount amount_of_peers(bool quick, bool shared) {
  litmus_amount a = amount_of(quick);
  a.seconds = 1e9;
  a.traffic = 0;
  a.batches = quick || (shared && std::string(gpu::name()) == "cuda") ? 1 : 4;
  if (!quick && shared && std::string(gpu::name()) == "cuda") a.instances = 64;
  return a;
}

}  // namespace

bool try_orders_of_peers(row_writer& rows, bool quick) {
  const member m;
  const bool shared = gpu::device_count() < m.size() || std::string(gpu::name()) == "host";
  peers p(rows, m, amount_of_peers(quick, shared));
  const std::string agents = shared ? "PEs that share a GPU" : "PEs on GPUs of their own";
  if (!p.mapped()) {
    if (m.me() == 0)
      rows.add(
          {{"test", "all"}, {"agents", agents}, {"status", "skipped"}, {"why", "PEs do not map each other's heaps"}});
    return true;
  }
  bool good = true;
  for (const homes& h : k_homes) {
    litmus_place place{agents, h.data_text, h.flags_text, true, true, false};
    for (int i = 0; i < k_litmus_count; ++i) {
      const auto t = static_cast<litmus>(i);
      place.promised = relies_on(t, h);
      if (goes_with(t, place)) good = p.try_one(t, h, place) && good;
    }
  }
  return good;
}

}  // namespace xio::verify
