// SPDX-License-Identifier: MIT
#include "proxy/ofi_trial.hpp"

#include <cstring>
#include <thread>

#include "base/error.hpp"
#include "base/run_clock.hpp"
#include "proxy/decoding.hpp"
#include "proxy/keys.hpp"
#include "proxy/queue_numbers.hpp"
#include "xio/device/impl/view.hpp"

namespace xio::proxy::ofi {

namespace {

// No NIC gives it to a queue pair of its own, nor does the memory's trial.
constexpr std::uint32_t k_number = 2;
static_assert(k_number < k_first_number);
constexpr std::chrono::seconds k_patience{10};
constexpr std::size_t k_data = 64 << 10;
constexpr int k_rounds = 4;
constexpr unsigned k_busy_turns = 500;
constexpr std::uint64_t k_all = ~std::uint64_t{0};

// Where things lie in the trial's memory.
constexpr std::size_t k_from = 0, k_to = k_data, k_word = 2 * k_data, k_old = k_word + 64, k_bytes = k_old + 64;

class bench {
 public:
  bench(fabric& f, int me, const std::string& name) : fabric_(f), me_(me), name_(name), memory_(k_bytes / 8) {
    keys_ = f.register_memory(memory_.data(), k_bytes,
                              local_read | local_write | remote_read | remote_write | remote_atomic);
    try {
      connect();
    } catch (...) {
      end();
      throw;
    }
  }
  ~bench() { end(); }
  bench& operator=(bench&&) = delete;

  unsigned char* at(std::size_t place) { return reinterpret_cast<unsigned char*>(memory_.data()) + place; }
  std::uint64_t word(std::size_t place) {
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at(place)), __ATOMIC_ACQUIRE);
  }
  void set(std::size_t place, std::uint64_t v) { std::memcpy(at(place), &v, sizeof v); }

  op copy(verb what, std::size_t local, std::size_t remote, std::uint32_t bytes) {
    op o;
    o.what = what;
    o.signalled = true;
    o.bytes = bytes;
    o.span_count = 1;
    o.spans[0] = {reinterpret_cast<std::uint64_t>(at(local)), bytes, keys_.lkey};
    o.remote = reinterpret_cast<std::uint64_t>(at(remote));
    o.remote_key = keys_.rkey;
    return o;
  }
  op atomic(const atomic_change& c) {
    op o = copy(verb::atomic, k_old, k_word, c.width);
    o.change = c;
    return o;
  }

  // Hands over an op; the turns that it takes are given.
  void begin(const op& o, const char* what) {
    const auto until = run_clock::now() + k_patience;
    while (!executor_->begin(o)) turn(until, what, [] {});
  }
  // Until the oldest has ended. Whether it ended well.
  template <class Observe>
  bool finish(const char* what, Observe&& observe) {
    const auto until = run_clock::now() + k_patience;
    op_error how;
    while (!executor_->ended(&how)) {
      turn(until, what, observe);
    }
    is_dead_ = bool{how};
    return !how;
  }
  bool carry_out(const op& o, const char* what) {
    if (std::exchange(is_dead_, false)) connect();
    begin(o, what);
    return finish(what, [] {});
  }
  [[noreturn]] void refuse(const char* what, const char* why) const {
    fail(XIO_ERR_UNSUPPORTED,
         "{}: {} to this PE itself {}, although the provider offers them; use another XIO_FABRIC_PROVIDER or another "
         "libfabric (XIO_FABRIC_LIBRARY), or XIO_NIC_EXECUTOR=tcp. FI_LOG_LEVEL=warn says more",
         name_, what, why);
  }

 private:
  template <class Observe>
  void turn(run_clock::time_point until, const char* what, Observe&& observe) {
    fabric_.poll();
    observe();
    executor_->advance(k_data);
    observe();
    if (run_clock::now() > until) refuse(what, "do not end");
    // Both ends make progress in this thread alone, so that sleeping early would only lengthen it.
    if (++turns_ % k_busy_turns == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  // A queue pair that has failed is of no more use.
  void connect() {
    executor_.reset();
    fabric_.forget(k_number);
    const device_address mine = fabric_.get_queue_address(k_number, me_);
    executor_ = fabric_.connect(k_number, me_, mine, k_number);
  }
  void end() {
    executor_.reset();
    fabric_.forget(k_number);
    fabric_.unregister_memory(keys_);
  }

  fabric& fabric_;
  const int me_;
  const std::string& name_;
  std::vector<std::uint64_t> memory_;
  key_pair keys_{};
  std::unique_ptr<proxy::executor> executor_;
  bool is_dead_ = false;
  unsigned turns_ = 0;
};

void try_copies(bench& b) {
  for (std::size_t i = 0; i < k_data; ++i) *b.at(k_from + i) = static_cast<unsigned char>(i * 7 + 1);
  if (!b.carry_out(b.copy(verb::write, k_from, k_to, k_data), "writes")) b.refuse("writes", "fail");
  if (std::memcmp(b.at(k_from), b.at(k_to), k_data) != 0) b.refuse("writes", "complete before their data have arrived");
  std::memset(b.at(k_from), 0, k_data);
  if (!b.carry_out(b.copy(verb::read, k_from, k_to, k_data), "reads")) b.refuse("reads", "fail");
  if (std::memcmp(b.at(k_from), b.at(k_to), k_data) != 0) b.refuse("reads", "complete without their data");
}

struct atomic_case {
  atomic_change change;
  std::uint64_t expected;  // of the word, which was 5
};

bool works(bench& b, const std::vector<atomic_case>& cases) {
  for (const atomic_case& c : cases) {
    b.set(k_word, 5);
    b.set(k_old, 0);
    if (!b.carry_out(b.atomic(c.change), "atomics") || b.word(k_word) != c.expected || b.word(k_old) != 5) return false;
  }
  return true;
}

std::vector<atomic_case> plain(std::uint8_t width) {
  return {{fetch_add(3, width), 8},
          {fetch_add(0, width), 5},
          {compare_swap(5, 9, width), 9},
          {compare_swap(4, 9, width), 5}};
}
std::vector<atomic_case> masked(std::uint8_t width) {
  return {{{true, width, 6, k_all, 0, 0, 0, false}, 3},
          {{false, width, 77, 0, 0, k_all, 0, false}, 77},
          {{false, width, 10, 0, 0, 10, 0, false}, 15},
          {{false, width, 0, 0, 0, 4, 0, false}, 1}};
}

// A signal behind data: a reader that has seen the signal must see the data. Both are read between turns, as a kernel
// would read them.
bool is_ordered(bench& b) {
  for (int round = 1; round <= k_rounds; ++round) {
    std::memset(b.at(k_from), round, k_data);
    b.set(k_word, 0);
    b.begin(b.copy(verb::write, k_from, k_to, k_data), "writes");
    b.begin(b.atomic(fetch_add(1)), "atomics");
    bool right = true, seen = false;
    const auto observe = [&] {
      if (seen || b.word(k_word) == 0) return;
      seen = true;
      right = std::memcmp(b.at(k_from), b.at(k_to), k_data) == 0;
    };
    if (!b.finish("writes", observe) || !b.finish("atomics", observe))
      b.refuse("a write and an atomic behind it", "fail");
    if (!right) return false;
  }
  return true;
}

}  // namespace

trial_result try_ops(fabric& f, int me, const std::string& name) {
  trial_result r{};
  bench b(f, me, name);
  try_copies(b);
  if (!works(b, plain(8))) b.refuse("atomics of 8 bytes", "do something else");
  r.ordered = is_ordered(b);
  r.text = "of 8 bytes";
  const bool narrow = works(b, plain(4));
  if (narrow) r.atomics |= dev::nic_native_4, r.text += " and 4 bytes";
  if (works(b, masked(8)) && (!narrow || works(b, masked(4)))) r.atomics |= dev::nic_masked, r.text += ", with masks";
  return r;
}

}  // namespace xio::proxy::ofi
