// SPDX-License-Identifier: MIT
// A ConnectX's firmware as far as queues of users go: it decodes commands strictly, keeps completion queues and queue
// pairs with their states, and names by status and syndrome the rule that a command broke. The device (nic) does the
// work of a connected queue pair.
#pragma once
#include <array>
#include <cstddef>
#include <map>

#include "uverbs/firmware/status.hpp"

namespace uverbs::firmware {

// The only one.
inline constexpr std::uint32_t k_event_queue = 9;

struct umem {
  unsigned char* at;
  std::uint64_t bytes;
};

// Rings of a queue pair, checked.
struct rings {
  const unsigned char* slots;
  std::uint32_t depth;
  const std::uint32_t* send_record;
  unsigned char* completions;
  std::uint32_t uar_page;
  // Of the receive side, or null.
  const std::uint32_t *receive_record, *receive_cq_record;
  unsigned char* receive_completions;
  std::uint32_t receive_depth, receive_cq_depth;
};

struct completion_queue {
  std::uint32_t log_entries, uar_page;
  unsigned char* entries;
  const std::uint32_t* record;
  bool collapsed;
  std::uint32_t users = 0;  // queue pairs
};

enum class qp_state : std::uint8_t { reset = 0, init = 1, rtr = 2, rts = 3, error = 6 };  // MLX5_QP_STATE_*

struct queue_pair {
  qp_state state = qp_state::reset;
  rings memory;
  std::uint32_t cq, receive_cq, remote_qpn = 0, send_psn = 0, receive_psn = 0;
  std::array<unsigned char, 16> remote_gid{};
  std::uint32_t may = 0;  // rights of proxy/keys.hpp that the peer has
  std::uint32_t timeout = 0, retries = 0, rnr_retries = 0;
};

// The kernel's driver made these, and commands name them.
class resources {
 public:
  virtual ~resources() = default;
  virtual const umem* find_umem(std::uint32_t id) const = 0;
  virtual bool has_uar(std::uint32_t page) const = 0;
  virtual bool has_domain(std::uint32_t pdn) const = 0;
  virtual bool has_gid(std::uint32_t index) const = 0;
  // The Ethernet address at which a GID is found.
  virtual bool mac_of(const unsigned char gid[16], unsigned char mac[6]) const = 0;
};

// Told of queue pairs as they change.
class nic {
 public:
  virtual ~nic() = default;
  virtual void start(std::uint32_t qpn, const queue_pair& q) = 0;  // RTS
  virtual void stop(std::uint32_t qpn) = 0;
};

struct limits {
  std::uint32_t log_max_qp_size = 15, log_max_cq_size = 22, log_max_depth = 4;
  bool real_time_clock_only = false;
};

class processor {
 public:
  processor(const resources& r, nic& n) : resources_(r), nic_(n) {}

  // The reply is cleared first; it has at least 16 bytes.
  verdict execute(const unsigned char* in, std::size_t in_bytes, unsigned char* out, std::size_t out_bytes);
  const queue_pair* find(std::uint32_t qpn) const {
    const auto found = pairs_.find(qpn);
    return found == pairs_.end() ? nullptr : &found->second;
  }
  const std::map<std::uint32_t, queue_pair>& pairs() const { return pairs_; }

  limits& get_limits() { return limits_; }
  // Commands with this opcode are refused by `how`, for tests.
  void refuse(std::uint32_t opcode, verdict how) { refused_[opcode] = how; }
  void refuse_nothing() { refused_.clear(); }

 private:
  verdict run(const unsigned char* in, std::size_t in_bytes, unsigned char* out, std::size_t out_bytes);
  verdict create_cq(const unsigned char* in, unsigned char* out);
  verdict create_qp(const unsigned char* in, unsigned char* out);
  verdict check_receives(const unsigned char* in, rings* memory) const;
  verdict modify(std::uint32_t opcode, const unsigned char* in);
  verdict to_init(queue_pair& q, const unsigned char* in);
  verdict to_rtr(queue_pair& q, const unsigned char* in);
  verdict to_rts(std::uint32_t qpn, queue_pair& q, const unsigned char* in);
  verdict check_path(const unsigned char* in) const;
  verdict query(std::uint32_t opcode, const unsigned char* in, unsigned char* out) const;
  verdict destroy(std::uint32_t opcode, const unsigned char* in);

  const resources& resources_;
  nic& nic_;
  limits limits_;
  std::map<std::uint32_t, verdict> refused_;
  std::map<std::uint32_t, completion_queue> queues_;
  std::map<std::uint32_t, queue_pair> pairs_;
  std::uint32_t next_cq_ = 0x41, next_qp_ = 0x1c3;
};

// MLX5_CMD_OP_*
enum opcode : std::uint32_t {
  op_create_cq = 0x400,
  op_destroy_cq = 0x401,
  op_query_cq = 0x402,
  op_create_qp = 0x500,
  op_destroy_qp = 0x501,
  op_rst2init_qp = 0x502,
  op_init2rtr_qp = 0x503,
  op_rtr2rts_qp = 0x504,
  op_2err_qp = 0x507,
  op_2rst_qp = 0x50a,
  op_query_qp = 0x50b,
};

}  // namespace uverbs::firmware
