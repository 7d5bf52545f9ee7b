// SPDX-License-Identifier: MIT
// One wave, whose registers a test sets and reads, and a few lines of assembly that it runs.
#pragma once
#include "amdgpu/assembler.hpp"
#include "amdgpu/code_object.hpp"
#include "amdgpu/isa/wave.hpp"
#include "amdgpu/memory/adversary.hpp"
#include "amdgpu/memory/l2_cache.hpp"
#include "amdgpu/memory/plain.hpp"

namespace amdgpu::test {

class machine {
 public:
  static constexpr std::uint32_t poison = 0xdeadbeef;

  // With a seed, memory is the adversary; `hdp`: of a GPU with a host data path that holds writes back.
  explicit machine(std::uint64_t seed = 0, bool hdp = false)
      : l2(seed, hdp),
        memory(visible),
        late(visible, seed, &l2),
        rows(static_cast<std::uint32_t*>(std::aligned_alloc(64, 512 * lanes * 4)), &std::free) {
    shared.memory = &memory;
    if (seed) shared.memory = &late;
    shared.late = seed != 0;
    shared.how.name = "test";
    if (const char* const named = std::getenv("XIO_AMDGPU_TARGET")) shared.how.target = target_of(named);
    shared.how.lds_aperture = std::uint64_t{1} << 48;
    shared.how.private_aperture = std::uint64_t{2} << 48;
    w.of = &shared;
    w.v = rows.get();
    w.mode = 0x2f0;  // denormals, DX10_CLAMP off, IEEE
    for (unsigned i = 0; i < 512 * lanes; ++i) w.v[i] = poison;
    for (auto& s : w.s) s = poison;
    wave32(false);
    std::memset(w.mask_row, 0, sizeof(w.mask_row));
  }

  void exec(std::uint64_t mask) { w.set_mask(reg::exec, mask); }
  // Of gfx1100; with all lanes on.
  void wave32(bool narrow) {
    w.wave32 = narrow;
    exec(w.everyone());
  }
  std::uint32_t& v(unsigned n, unsigned lane) { return w.v[n * lanes + lane]; }
  std::uint64_t v64(unsigned n, unsigned lane) { return v(n, lane) | std::uint64_t{v(n + 1, lane)} << 32; }
  void set_v64(unsigned n, unsigned lane, std::uint64_t x) {
    v(n, lane) = static_cast<std::uint32_t>(x);
    v(n + 1, lane) = static_cast<std::uint32_t>(x >> 32);
  }
  std::uint32_t& s(unsigned n) { return w.s[n]; }

  // Puts the program into memory that the GPU sees, behind it an s_endpgm.
  void load(const std::string& text) {
    const std::vector<std::uint32_t> words = assembled(text);
    code = make_pages(words.size() * 4);
    std::memcpy(code.get(), words.data(), words.size() * 4);
    visible.list(code.get(), words.size() * 4);
  }
  // Other instructions in the place of those that were loaded; no more of them.
  void overwrite(const std::string& text) {
    const std::vector<std::uint32_t> words = assembled(text);
    std::memcpy(code.get(), words.data(), words.size() * 4);
  }
  // Makes the wave stand at its start.
  void start() {
    shared.failed = fault{};
    w.stopped = false;
    w.now = wave::state::ready;
    w.pc = reinterpret_cast<std::uint64_t>(code.get());
  }
  // Runs it from its start to its end, or to a fault.
  const fault& go() {
    start();
    for (unsigned turns = 0; turns < 100000 && w.now == wave::state::ready && !w.stopped; ++turns) run_wave(w, 1000);
    return shared.failed;
  }
  // Runs a program to its first s_sleep; turn() goes on to the next, or to the end.
  void begin(const std::string& text) {
    load(text);
    start();
    turn();
  }
  void turn() { run_wave(w, 100); }
  // Runs a program to its end, and calls f() behind each turn, before which memory has had one.
  template <class F>
  void each_turn(const std::string& text, const F& f) {
    load(text);
    start();
    while (w.now != wave::state::ended) {
      late.pass_turn();
      turn();
      f();
    }
  }
  const fault& run(const std::string& text) {
    load(text);
    return go();
  }

  buffers visible;
  l2_cache l2;
  plain memory;
  adversary late;
  shared_state shared;
  wave w;

 private:
  std::vector<std::uint32_t> assembled(const std::string& text) const {
    const bool wide = shared.how.target == target::gfx1100 && !w.wave32;
    return assembler::words(text + "\ns_endpgm", name_of(shared.how.target),
                            wide ? "-wavefrontsize32,+wavefrontsize64" : "");
  }

  std::unique_ptr<std::uint32_t[], void (*)(void*)> rows;
  pages code;
};

}  // namespace amdgpu::test
