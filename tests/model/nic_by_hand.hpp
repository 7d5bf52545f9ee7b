// SPDX-License-Identifier: MIT
// What tests of the NIC's decoders share, which lay entries down byte by byte: numbers as bytes, the NIC and the memory
// that entries name, and faults on purpose.
#pragma once
#include "../gtest.hpp"
#include "gpu/gpu.hpp"
#include "proxy/nic.hpp"
#include "proxy/shm_executor.hpp"

namespace xio::test {

inline void put_bytes(unsigned char* at, std::uint64_t v, int n, bool high_first) {
  for (int i = 0; i < n; ++i) at[i] = static_cast<unsigned char>(v >> (8 * (high_first ? n - 1 - i : i)));
}
inline std::uint64_t get_bytes(const unsigned char* at, int n, bool high_first) {
  std::uint64_t v = 0;
  for (int i = 0; i < n; ++i) v = (v << 8) | at[high_first ? i : n - 1 - i];
  return v;
}
#define XIO_TEST_BYTES(order, high)                                                                                  \
  namespace order {                                                                                                  \
  inline void put16(unsigned char* at, std::uint64_t v) { put_bytes(at, v, 2, high); }                               \
  inline void put24(unsigned char* at, std::uint64_t v) { put_bytes(at, v, 3, high); }                               \
  inline void put32(unsigned char* at, std::uint64_t v) { put_bytes(at, v, 4, high); }                               \
  inline void put64(unsigned char* at, std::uint64_t v) { put_bytes(at, v, 8, high); }                               \
  inline std::uint64_t get(const unsigned char* at, int n) { return get_bytes(at, n, high); }                        \
  inline std::uint32_t get32(const unsigned char* at) { return static_cast<std::uint32_t>(get_bytes(at, 4, high)); } \
  }
XIO_TEST_BYTES(low_first, false)
XIO_TEST_BYTES(high_first, true)
#undef XIO_TEST_BYTES

// The test polls the NIC itself. The peer's heap is `remote_`, under an address of its own; local_[i] is i * 7 + 1.
class nic_by_hand {
 protected:
  static constexpr std::uint64_t k_remote_address = 0x7000'0000'0000;
  static constexpr std::uint32_t k_remote_key = 0xabc00;  // and the next one, which may only read

  explicit nic_by_hand(std::uint64_t longest) : nic_(fabric(longest), 5) {
    std::memset(remote_, 0x11, sizeof remote_);
    for (std::size_t i = 0; i < sizeof local_; ++i) local_[i] = static_cast<unsigned char>(i * 7 + 1);
    using namespace proxy;
    key_ = nic_.register_memory(local_, sizeof local_, local_read | local_write).lkey;
    read_only_key_ = nic_.register_memory(local_, sizeof local_, local_read).lkey;
  }

  template <class Make>
  void connect_queue(Make&& make) {
    number_ = nic_.create_queue(make);
    nic_.connect(number_, 1, {}, 0);
  }
  void run() {
    for (int i = 0; i < 100 && nic_.poll(); ++i) {
    }
  }
  bool remote_is(std::uint8_t value) const {
    for (const unsigned char b : remote_)
      if (b != value) return false;
    return true;
  }
  std::uint64_t remote_word(std::size_t at) const { return low_first::get(remote_ + at, 8); }
  std::uint64_t local_word(std::size_t at) const { return low_first::get(local_ + at, 8); }
  void set_remote_word(std::size_t at, std::uint64_t v) { low_first::put64(remote_ + at, v); }

  alignas(64) unsigned char local_[4096];
  alignas(64) unsigned char remote_[4096];
  proxy::nic nic_;
  std::uint32_t number_ = 0, key_ = 0, read_only_key_ = 0;

 private:
  std::unique_ptr<proxy::fabric> fabric(std::uint64_t longest) {
    using namespace proxy;
    auto f = std::make_unique<shm_fabric>(gpu::payload(), longest, 5);
    f->adopt(1, k_remote_key, {k_remote_address, sizeof remote_, remote_, remote_read | remote_write | remote_atomic});
    f->adopt(1, k_remote_key + 1, {k_remote_address, sizeof remote_, remote_, remote_read});
    return f;
  }
};

// One fault for every op, or for the nth alone.
struct one_fault : proxy::fault_plan {
  using kind = proxy::injected_fault::kind;
  explicit one_fault(kind what, std::optional<std::uint64_t> nth = {}) : only(nth) {
    fault.what = what;
    if (what == kind::fail) fault.how = {proxy::outcome::retry_exceeded, proxy::rule::injected};
  }
  proxy::injected_fault next(std::uint32_t, std::uint64_t nth, const proxy::op&) override {
    return only && *only != nth ? proxy::injected_fault{} : fault;
  }

  proxy::injected_fault fault;
  std::optional<std::uint64_t> only;
};

// Every number below how many they are is among them, once.
template <class Number>
void expect_each_once(const std::vector<Number>& values) {
  std::vector<bool> had(values.size());
  for (const Number v : values) {
    ASSERT_LT(v, had.size());
    ASSERT_FALSE(had[v]) << v << " was seen twice";
    had[v] = true;
  }
}

}  // namespace xio::test
