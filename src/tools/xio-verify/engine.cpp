// SPDX-License-Identifier: MIT
// The stages that try one engine between PEs: copies of many sizes compared byte by byte, flags behind data, quiet, and
// atomics. Which engine carries them XIO_ROUTE says.
#include "tools/xio-verify/engine.hpp"
#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/backends.hpp"
#include "tools/member.hpp"
#include "tools/xio-verify/worker.hpp"

namespace xio::verify {
namespace {

using tools::member;

constexpr std::size_t k_guard = 256;
constexpr unsigned char k_poison = 0xa5;
constexpr const char* k_caller_names[] = {"thread", "wave", "workgroup"};

// Byte i of what PE pe sends: neighbours differ, and so do PEs.
unsigned char pattern(int pe, std::size_t i) {
  std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u ^ (static_cast<std::uint32_t>(pe) + 1) * 2246822519u;
  x ^= x >> 15;
  return static_cast<unsigned char>((x * 2246822519u) >> 24);
}

std::vector<unsigned char> pattern_of(int pe, std::size_t bytes) {
  std::vector<unsigned char> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = pattern(pe, i);
  return all;
}

class engine_trial {
 public:
  engine_trial(row_writer& rows, const member& m, bool quick)
      : rows_(rows),
        m_(m),
        largest_(quick ? 65537 : (1 << 20) + 5),
        result_(sizeof(engine_result), gpu::place::device) {
    w_.ctx = m.ctx();
    w_.me = m.me();
    w_.n = m.size();
    w_.turns = quick ? 20 : 200;
    w_.src = m.symmetric<unsigned char>(largest_ + k_guard);
    w_.dst = m.symmetric<unsigned char>(largest_ + k_guard);
    w_.words = m.symmetric<engine_words>(1);
    w_.misses = m.symmetric<std::uint64_t>(2 * std::size_t{w_.turns});
    w_.result = result_.as<engine_result>();
  }

  bool run() {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{100}, std::size_t{4096}, largest_})
      for (const caller who : {caller::thread, caller::wave, caller::workgroup})
        for (const bool get : {false, true})
          for (const bool blocking : {true, false}) copy(bytes, who, get, blocking);
    messages("put with signal", flag_by::put_signal);
    messages("put, fence, value", flag_by::fence_and_value);
    messages("put, fence, atomic", flag_by::fence_and_atomic);
    buffering();
    adds();
    return good_;
  }

 private:
  void begin() {
    gpu::fill_zero(w_.result, sizeof *w_.result);
    gpu::fill_zero(w_.words, sizeof *w_.words);
    m_.barrier();
  }

  // Reads what a kernel found, and adds the row. more: what the host found.
  void finish(json row, const char* trouble, std::uint64_t checks, std::uint64_t more) {
    engine_result r{};
    gpu::copy(&r, w_.result, sizeof r);
    row["pe"] = w_.me;
    row["checks"] = checks;
    row["wrong"] = more + r.wrong;
    const bool good = trouble == nullptr && r.status == XIO_OK && more + r.wrong == 0;
    row["status"] = good ? "passed" : "failed";
    if (trouble != nullptr) row["why"] = trouble;
    if (trouble == nullptr && r.status != XIO_OK)
      row["why"] = xio_status_name(static_cast<xio_status_t>(r.status)) + m_.failure();
    if (trouble == nullptr && r.status == XIO_OK && !good) row["why"] = "data were not as they must be";
    rows_.add(row);
    good_ = good_ && good;
    m_.barrier();
  }

  void copy(std::size_t bytes, caller who, bool get, bool blocking) {
    const std::vector<unsigned char> mine = pattern_of(w_.me, bytes), poison(bytes + k_guard, k_poison);
    gpu::copy(w_.src, mine.data(), bytes);
    gpu::copy(w_.dst, poison.data(), poison.size());
    begin();
    w_.bytes = bytes;
    const char* trouble = run_copy(w_, get, blocking, who);
    m_.barrier();
    // A put comes from the PE before this one, a get was of the one behind it.
    std::vector<unsigned char> wanted = pattern_of((w_.me + (get ? 1 : w_.n - 1)) % w_.n, bytes);
    wanted.resize(bytes + k_guard, k_poison);
    std::vector<unsigned char> got(wanted.size());
    gpu::copy(got.data(), w_.dst, got.size());
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != wanted[i] ? 1 : 0;
    const std::string op = std::string(get ? "get" : "put") + (blocking ? "" : "_nbi");
    finish({{"step", op}, {"caller", k_caller_names[static_cast<int>(who)]}, {"bytes", bytes}}, trouble, got.size(),
           wrong);
  }

  void messages(const char* name, flag_by how) {
    begin();
    const char* trouble = run_messages(w_, how);
    m_.barrier();
    const std::size_t bytes = k_message_words * sizeof(std::uint64_t);
    finish({{"step", name}, {"turns", w_.turns}, {"bytes", bytes}}, trouble, std::uint64_t{w_.turns} * k_message_words,
           0);
  }

  void buffering() {
    gpu::fill_zero(w_.misses, 2 * sizeof(std::uint64_t) * w_.turns);
    begin();
    const char* trouble = run_buffering(w_);
    m_.barrier();
    std::vector<std::uint64_t> missed(2 * std::size_t{w_.turns});
    gpu::copy(missed.data(), w_.misses, missed.size() * sizeof missed[0]);
    std::uint64_t both = 0;
    for (std::uint32_t i = 0; i < w_.turns; ++i) both += missed[2 * i] != 0 && missed[2 * i + 1] != 0 ? 1 : 0;
    finish({{"step", "put, quiet, read"}, {"turns", w_.turns}}, trouble, w_.turns, both);
  }

  void adds() {
    begin();
    const char* trouble = run_adds(w_);
    m_.barrier();
    engine_words found{};
    gpu::copy(&found, w_.words, sizeof found);
    const std::uint64_t all = std::uint64_t{k_groups} * k_threads * static_cast<unsigned>(w_.n);
    const bool right = w_.me != 0 || (found.total == all && found.sum == all * (all - 1) / 2);
    finish({{"step", "atomic fetch_add and add"}, {"threads", k_groups * k_threads}}, trouble, 2, right ? 0 : 1);
  }

  row_writer& rows_;
  const member& m_;
  std::size_t largest_;
  gpu::buffer result_;
  engine_work w_{};
  bool good_ = true;
};

// The backends that carry ops, as XIO notes them, and their counts.
void add_carrier(row_writer& rows, const member& m) {
  const int next = (m.me() + 1) % m.size();
  const std::string route = m.route(next, 1 << 20), small = m.route(next, 8);
  json row{{"step", "carrier"}, {"pe", m.me()}, {"route", route}, {"route_of_8_bytes", small}};
  row["emulated"] = std::string(gpu::name()) == "host";
  for (const auto& [engine, backend] : tools::opened_backends()) {
    row["backend_" + engine] = backend;
    if (engine == route && tools::is_model(backend)) row["emulated"] = true;
  }
  for (const auto& [name, which] : {std::pair{"rdma", XIO_ROUTE_RDMA}, {"sdma", XIO_ROUTE_SDMA}}) {
    xio_engine_stats_t stats = XIO_ENGINE_STATS_INIT;
    if (xio_ctx_stats(m.world(), m.ctx(), which, &stats) != XIO_OK || stats.ops == 0) continue;
    row[std::string(name) + "_ops"] = stats.ops;
    row[std::string(name) + "_doorbells"] = stats.doorbells;
  }
  row["status"] = "passed";
  rows.add(row);
}

}  // namespace

bool try_engine(row_writer& rows, bool quick) {
  const member m;
  engine_trial trial(rows, m, quick);
  const bool good = trial.run();
  add_carrier(rows, m);
  return good;
}

}  // namespace xio::verify
