// SPDX-License-Identifier: MIT
#include "proxy/ofi_endpoint.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <thread>

#include "base/error.hpp"
#include "base/kept_handlers.hpp"
#include "base/run_clock.hpp"

namespace xio::proxy::ofi {

namespace {

constexpr int k_read = 16;
constexpr std::size_t k_most_name = 128;

void* key_of(const owned<fid_mr>& mr) { return mr != nullptr ? fi_mr_desc(mr.get()) : nullptr; }

}  // namespace

endpoint::endpoint(const provider& by) : by_(by) {
  const kept_handlers keep(kept_handlers::which::always);
  fi_cq_attr c{};
  c.format = FI_CQ_FORMAT_CONTEXT;
  c.wait_obj = FI_WAIT_NONE;
  // Some providers abort the process when it overflows.
  c.size = 2 * by.what().under_way + k_read;
  fid_cq* cq = nullptr;
  if (const int err = fi_cq_open(by.domain(), &c, &cq, nullptr); err != 0) by.fail_to("make a completion queue", err);
  cq_.reset(cq);
  fid_ep* ep = nullptr;
  if (const int err = fi_endpoint(by.domain(), &by.info(), &ep, nullptr); err != 0) by.fail_to("make an endpoint", err);
  ep_.reset(ep);
  int err = fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV);
  if (err == 0) err = fi_ep_bind(ep, &by.peers()->fid, 0);
  if (err == 0) err = fi_enable(ep);
  // ofi_rxm makes one completion queue for the peers that it expects, 256 of them by itself.
  const bool over_verbs = by.what().provider.starts_with("verbs");
  if (err != 0)
    by.fail_to(over_verbs ? "start an endpoint (set FI_UNIVERSE_SIZE, to 16 or the number of PEs, for a device whose "
                            "completion queues are small)"
                          : "start an endpoint",
               err);
}

endpoint::~endpoint() {
  for (message& m : messages_) m.owner = nullptr;
  const auto until = run_clock::now() + k_drain;
  while (patient_ && under_way_ != 0 && !cq_lost_ && run_clock::now() < until)
    if (!poll()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  if (under_way_ != 0) log::info("{}: {} messages have not ended and are cut off", by_.name(), under_way_);
  const kept_handlers keep(kept_handlers::which::always);
  ep_.reset();  // before the queue that it names, and before the memory of messages
}

std::vector<unsigned char> endpoint::address() const {
  std::vector<unsigned char> out(k_most_name);
  std::size_t bytes = out.size();
  if (const int err = fi_getname(&ep_->fid, out.data(), &bytes); err != 0) by_.fail_to("say its address", err);
  out.resize(bytes);
  return out;
}

// --- Messages ------------------------------------------------------------------------------------------

// Those that nobody waits for take nobody's room: a dead peer's never end.
std::size_t endpoint::room() const {
  const std::size_t counted = taken_ - abandoned_;
  return by_.what().under_way > counted ? by_.what().under_way - counted : 0;
}

message& endpoint::take(poster* owner) {
  if (free_.empty()) {
    message& made = messages_.emplace_back();
    known_.emplace(&made.context, &made);
    if (by_.what().local_keys)
      message_keys_.push_back(by_.register_memory({&made, sizeof made}, FI_READ | FI_WRITE, nullptr));
    made.own_key = message_keys_.empty() ? nullptr : key_of(message_keys_.back());
    free_.push_back(&made);
  }
  message& m = *free_.back();
  free_.pop_back();
  ++taken_;
  m.owner = owner;
  m.taken = true;
  m.local_key = m.own_key;
  m.posted = m.compares = m.is_immediate = m.is_word = false;
  return m;
}

void endpoint::give_back(message& m) {
  m.taken = m.posted = false;
  m.owner = nullptr;
  --taken_;
  free_.push_back(&m);
}

void endpoint::abandon(const poster* owner) {
  for (message& m : messages_) {
    if (!m.taken || m.owner != owner) continue;
    if (m.posted) {
      m.owner = nullptr;
      ++abandoned_;
    } else {
      give_back(m);
    }
  }
}

long endpoint::post(message& m) {
  if (cq_lost_) return -FI_EIO;
  const long err = m.what == kind::atomic ? post_atomic(m) : post_copy(m);
  if (err != 0) return err;
  m.posted = true;
  ++under_way_;
  return 0;
}

long endpoint::post_copy(message& m) {
  iovec local{m.local, m.bytes};
  const fi_rma_iov remote{m.remote, m.bytes, m.key};
  const fi_msg_rma msg{&local, m.local_key != nullptr ? &m.local_key : nullptr, 1, m.to, &remote, 1, &m.context, 0};
  return m.what == kind::write ? fi_writemsg(ep_.get(), &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE)
                               : fi_readmsg(ep_.get(), &msg, FI_COMPLETION);
}

// All are fetching: the old value is what says that one has happened.
long endpoint::post_atomic(message& m) {
  const fi_ioc operand{&m.operand, 1}, compare{&m.compare, 1};
  fi_ioc result{&m.result, 1};
  const fi_rma_ioc remote{m.remote, 1, m.key};
  void** key = m.local_key != nullptr ? &m.local_key : nullptr;
  const fi_msg_atomic msg{&operand, key, 1, m.to, &remote, 1, m.type, m.change, &m.context, 0};
  return m.compares ? fi_compare_atomicmsg(ep_.get(), &msg, &compare, key, 1, &result, key, 1, FI_COMPLETION)
                    : fi_fetch_atomicmsg(ep_.get(), &msg, &result, key, 1, FI_COMPLETION);
}

// --- Completions ---------------------------------------------------------------------------------------

bool endpoint::poll() {
  bool any = false;
  fi_cq_entry entries[k_read];
  for (ssize_t n = k_read; n == k_read && !cq_lost_;) {
    n = fi_cq_read(cq_.get(), entries, k_read);
    if (n == -FI_EAGAIN || n == 0) break;
    any = true;
    if (n == -FI_EAVAIL) {
      n = take_failure() ? k_read : 0;
    } else if (n < 0) {
      cq_lost_ = true;
      const failure lost{static_cast<int>(-n), 0, by_.lib().text_of(n)};
      log::warn("{}: completions cannot be read: {}", by_.name(), lost.text);
      for (message& m : messages_)
        if (m.posted) finish(&m.context, &lost);
    } else {
      for (ssize_t i = 0; i < n; ++i) finish(entries[i].op_context, nullptr);
    }
  }
  return any;
}

bool endpoint::take_failure() {
  fi_cq_err_entry e{};
  if (fi_cq_readerr(cq_.get(), &e, 0) < 1) return false;
  char text[160];
  const char* words = fi_cq_strerror(cq_.get(), e.prov_errno, e.err_data, text, sizeof text);
  const failure why{e.err, e.prov_errno, words != nullptr ? words : "no reason given"};
  finish(e.op_context, &why);
  return true;
}

// Completions are checked like messages of a peer: one of nothing under way is dropped.
void endpoint::finish(void* context, const failure* why) {
  const auto found = known_.find(context);
  if (found == known_.end() || !found->second->posted) {
    log::info("{}: a completion of no message under way", by_.name());
    return;
  }
  message& m = *found->second;
  m.posted = false;
  --under_way_;
  if (m.owner != nullptr)
    m.owner->completed(m, why);
  else
    --abandoned_;
  give_back(m);
}

}  // namespace xio::proxy::ofi
