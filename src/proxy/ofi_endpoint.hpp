// SPDX-License-Identifier: MIT
// One endpoint of a libfabric domain with its completion queue: messages are posted to any peer, and their completions
// go to those that posted them. Closing it is the only way to end messages of which the provider says nothing.
#pragma once
#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>

#include <chrono>
#include <deque>
#include <unordered_map>

#include "proxy/ofi_provider.hpp"

namespace xio::proxy::ofi {

struct message;

// A provider's reason for a message that failed.
struct failure {
  int err, code;  // a number of libfabric's, and the provider's own
  std::string text;
};

// Posts messages, and gets each of them back once.
class poster {
 public:
  virtual ~poster() = default;
  virtual void completed(message& m, const failure* why) = 0;
};

// Memory of a peer, as the provider addresses it.
struct remote_place {
  std::uint64_t remote = 0, key = 0;
};

struct atomic_form {
  fi_op change = FI_SUM;
  fi_datatype type = FI_UINT64;
  bool compares = false;
  std::uint64_t operand = 0, compare = 0;
};

struct message : remote_place, atomic_form {
  fi_context2 context{};    // the provider's as long as the message is under way
  poster* owner = nullptr;  // null: nobody waits for it any more
  bool taken = false, posted = false;
  std::uint64_t number = 0;  // the owner's
  kind what = kind::write;
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint64_t bytes = 0;
  void* local = nullptr;
  void* local_key = nullptr;
  void* own_key = nullptr;  // of the message itself
  std::uint64_t result = 0;
  // The owner's notes.
  span_ref result_at{};
  bool big_endian_result = false, is_immediate = false, is_word = false;
  std::array<unsigned char, k_max_inline> inlined{};
};

class endpoint {
 public:
  explicit endpoint(const provider& by);
  // Waits for what is under way, k_drain at most, and then ends it.
  ~endpoint();
  // A living peer's NIC needs less; all queue pairs of the PE wait meanwhile.
  static constexpr std::chrono::milliseconds k_drain{100};
  void hurry() { patient_ = false; }  // the end does not wait
  endpoint& operator=(endpoint&&) = delete;

  const provider& by() const { return by_; }
  fid_ep* handle() const { return ep_.get(); }
  std::vector<unsigned char> address() const;

  std::size_t room() const;
  message& take(poster* owner);  // where there is room
  void give_back(message& m);
  // 0, -FI_EAGAIN (later), or why not.
  long post(message& m);
  // Of everything that the owner has here nothing is reported to it any more.
  void abandon(const poster* owner);
  // Hands out completions. True if there were any.
  bool poll();
  std::size_t under_way() const { return under_way_; }
  bool is_lost() const { return cq_lost_; }  // nothing completes any more

 private:
  long post_copy(message& m);
  long post_atomic(message& m);
  bool take_failure();
  void finish(void* context, const failure* why);

  const provider& by_;
  owned<fid_cq> cq_;
  owned<fid_ep> ep_;
  std::deque<message> messages_;  // its elements never move
  std::vector<message*> free_;
  std::unordered_map<const void*, message*> known_;  // all of them, by context
  std::size_t taken_ = 0, under_way_ = 0, abandoned_ = 0;
  std::deque<owned<fid_mr>> message_keys_;
  bool cq_lost_ = false, patient_ = true;
};

}  // namespace xio::proxy::ofi
