// SPDX-License-Identifier: MIT
// One queue of the NIC model's bnxt_re decoder, and entries laid down byte by byte (rdma-core
// providers/bnxt_re/bnxt_re-abi.h). A CQE names no rule, so the rule is read where the decoder reports the failure.
#pragma once
#include "model/nic/bnxt_queue.hpp"
#include "nic_by_hand.hpp"

namespace xio::test::bnxt {

namespace m = xio::model::rdma;
using m::rule;
using namespace low_first;

// enum bnxt_re_req_wc_status
inline constexpr unsigned k_ok = 0, k_local_length = 2, k_local_qp = 3, k_local_protection = 4, k_remote_invalid = 6,
                          k_remote_access = 7, k_retry = 0xa, k_flushed = 0xb;
// enum bnxt_re_wc_type
inline constexpr unsigned k_request = 0, k_terminal = 0xe;

// Hands everything on and keeps the failure.
class listener final : public m::wire_queue {
 public:
  listener(std::unique_ptr<m::wire_queue> queue, m::op_error* heard) : queue_(std::move(queue)), heard_(heard) {}
  m::op_error poll_doorbells() override { return queue_->poll_doorbells(); }
  bool waiting() const override { return queue_->waiting(); }
  m::op_error fetch(m::op& out) override { return queue_->fetch(out); }
  void complete(const m::receipt& r) override { queue_->complete(r); }
  void complete_in_error(const m::receipt& r, m::op_error f) override {
    *heard_ = f;
    queue_->complete_in_error(r, f);
  }
  void drop(const m::receipt& r) override { queue_->drop(r); }
  void flush() override { queue_->flush(); }

 private:
  std::unique_ptr<m::wire_queue> queue_;
  m::op_error* heard_;
};

// One queue of 8 entries and 16 CQEs on one NIC.
struct nic_bnxt : testing::Test, protected nic_by_hand {
  static constexpr std::uint32_t k_depth_log2 = 3, k_depth = 8, k_cq_depth_log2 = 4, k_cq_depth = 16;
  static constexpr std::uint32_t k_mtu = 256, k_cq_number = 0x54321, k_max_message = 2048;

  explicit nic_bnxt(std::uint64_t start = 0, std::uint32_t psn = 0x123456, bool by_slots = false)
      : nic_by_hand(k_max_message), first_(start), next_(start), psn_(psn) {
    connect_queue(maker(&bell_, start, by_slots));
  }

  std::function<std::unique_ptr<listener>(std::uint32_t)> maker(const std::uint64_t* bell, std::uint64_t start,
                                                                bool by_slots = false) {
    m::bnxt_memory memory{};
    memory.slots = reinterpret_cast<const std::uint32_t*>(slots_);
    memory.msns = reinterpret_cast<const std::uint64_t*>(msns_);
    memory.depth_log2 = k_depth_log2;
    memory.doorbell = bell;
    memory.cqes = reinterpret_cast<std::uint32_t*>(cqes_);
    memory.cq_depth_log2 = k_cq_depth_log2;
    memory.cq_doorbell = &cq_bell_;
    memory.cq_number = k_cq_number;
    memory.start = start;
    memory.first_psn = psn_;
    memory.path_mtu = k_mtu;
    memory.by_slots = by_slots;
    return [this, memory](std::uint32_t number) {
      return std::make_unique<listener>(std::make_unique<m::bnxt_queue>(memory, number, k_max_message), &heard_);
    };
  }

  unsigned char* slot(std::uint64_t i) { return slots_ + (i % k_depth) * 128; }
  unsigned char* msn(std::uint64_t i) { return msns_ + (i % k_depth) * 8; }

  // Header and MSN entry of a WQE that carries `bytes`. Bytes that an earlier lap left behind stay.
  unsigned char* begin(unsigned opcode, unsigned flags, unsigned slots, std::uint32_t key, std::uint64_t lower,
                       std::uint64_t bytes) {
    unsigned char* e = slot(next_);
    e[0] = static_cast<unsigned char>(opcode);
    e[1] = static_cast<unsigned char>(flags);
    e[2] = static_cast<unsigned char>(slots);
    e[3] = 0;
    put32(e + 4, key);
    put64(e + 8, lower);
    const std::uint32_t after = psn_ + static_cast<std::uint32_t>(bytes == 0 ? 1 : (bytes + k_mtu - 1) / k_mtu);
    put24(msn(next_), psn_);
    put24(msn(next_) + 3, after);
    put16(msn(next_) + 6, next_ % k_depth);
    psn_ = after & 0xffffff;
    ++next_;
    return e;
  }
  void remote(unsigned char* e, std::uint64_t offset) {
    put64(e + 16, k_remote_address + offset);
    put32(e + 24, k_remote_key);
    put32(e + 28, 0);
  }
  void sge(unsigned char* at, std::uint32_t bytes, std::size_t offset) {
    put64(at, reinterpret_cast<std::uint64_t>(local_ + offset));
    put32(at + 8, key_);
    put32(at + 12, bytes);
  }
  unsigned char* copy(unsigned opcode, std::uint64_t offset, std::uint32_t bytes, unsigned flags = 0x01) {
    unsigned char* e = begin(opcode, flags, 3, 0, bytes, bytes);
    remote(e, offset);
    sge(e + 32, bytes, 0);
    return e;
  }
  unsigned char* write(std::uint64_t offset, std::uint32_t bytes, unsigned flags = 0x01) {
    return copy(0x04, offset, bytes, flags);
  }
  unsigned char* inlined(std::uint64_t offset, std::uint32_t bytes) {
    unsigned char* e = begin(0x04, 0x11, 2 + (bytes + 15) / 16, 0, bytes, bytes);
    remote(e, offset);
    for (unsigned i = 0; i < bytes; ++i) e[32 + i] = static_cast<unsigned char>(0xc0 + i);
    return e;
  }
  unsigned char* atomic(unsigned opcode, std::uint64_t offset, std::uint64_t swap_or_add, std::uint64_t compare) {
    unsigned char* e = begin(opcode, 0x01, 3, k_remote_key, k_remote_address + offset, 8);
    put64(e + 16, swap_or_add);
    put64(e + 24, compare);
    sge(e + 32, 8, 512);
    return e;
  }

  static void bell(std::uint64_t* word, std::uint64_t count, std::uint32_t log2, std::uint32_t number, unsigned type) {
    unsigned char at[8];
    put24(at, count & ((1u << log2) - 1));
    at[3] = (count >> log2) & 1;
    put32(at + 4, number | 0x04000000u | (std::uint32_t{type} << 28));
    std::memcpy(word, at, 8);
  }
  void ring(std::uint64_t producer) { bell(&bell_, producer, k_depth_log2, number_, 0); }
  void go() {
    ring(next_);
    run();
  }

  // --- Completions ---

  bool has_cqe() const { return (cqes_[(cq_next_ % k_cq_depth) * 32 + 24] & 1) == ((cq_next_ / k_cq_depth + 1) & 1); }
  void expect_cqe(unsigned type, unsigned status, std::uint64_t consumer) {
    ASSERT_TRUE(has_cqe()) << "CQE " << cq_next_;
    const unsigned char* c = cqes_ + (cq_next_++ % k_cq_depth) * 32;
    EXPECT_PAIRS((get32(c), number_), (get32(c + 8), consumer % k_depth), (c[24] >> 1, type), (c[25], status));
    for (const int at : {4, 12, 16, 20, 28}) EXPECT_EQ(get32(c + at), 0u) << "offset " << at;
    EXPECT_EQ(c[26] | c[27], 0);
  }
  void give_back() {
    bell(&cq_bell_, cq_next_, k_cq_depth_log2, k_cq_number, 4);
    run();
  }
  void expect_done(std::uint64_t first) {
    expect_cqe(k_request, k_ok, first + 1);
    EXPECT_FALSE(has_cqe());
    give_back();
  }
  void expect_error(std::uint64_t first, unsigned status, rule why) {
    expect_cqe(k_request, status, first + 1);
    EXPECT_FALSE(has_cqe());
    EXPECT_EQ(static_cast<int>(heard_.why), static_cast<int>(why));
  }
  alignas(64) unsigned char slots_[k_depth * 128] = {};
  alignas(64) unsigned char msns_[k_depth * 8] = {};
  alignas(64) unsigned char cqes_[k_cq_depth * 32] = {};
  std::uint64_t bell_ = 0, cq_bell_ = 0, cq_next_ = 0;
  m::op_error heard_;
  const std::uint64_t first_;
  std::uint64_t next_;
  std::uint32_t psn_;
};

}  // namespace xio::test::bnxt
