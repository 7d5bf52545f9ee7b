// SPDX-License-Identifier: MIT
#include "proxy/shm_executor.hpp"

#include "base/error.hpp"

namespace xio::proxy {

namespace {

constexpr unsigned k_rnr_for_ever = 7;
// The most bytes that a peer which was stopped in the middle of an op may still write when it goes on.
constexpr std::uint64_t k_piece = 64 << 10;
constexpr std::chrono::microseconds k_rnr_timer{640};  // code 12, as verbs_queue.cpp asks of devices

}  // namespace

bool shm_executor::begin(const op& o) {
  if (stage_ != stage::idle) return false;
  copy_used(op_, o);
  moved_ = 0;
  how_ = check();
  stage_ = how_ ? stage::over : stage::running;
  return true;
}

op_error shm_executor::distant(std::uint32_t wanted, unsigned char** place) const {
  if (remote_ == nullptr) return {outcome::retry_exceeded, rule::not_connected};
  return find_remote(*remote_, op_.remote_key, op_.remote, op_.bytes, wanted, place);
}

// Before the first byte moves. The requester looks at its own memory first, as in hardware.
op_error shm_executor::check() const {
  if (const op_error f = check_local(local_, op_)) return f;
  if (op_.what == verb::atomic && (op_.remote & (op_.change.width - 1u)) != 0)
    return {outcome::remote_invalid_request, rule::atomic_alignment};
  if (op_.has_immediate && !deliver_) return {outcome::rnr_retry_exceeded, rule::not_connected};
  // An op without bytes names no memory.
  unsigned char* place;
  return op_.bytes == 0 ? op_error{} : distant(remote_right(op_.what), &place);
}

op_error shm_executor::write_inline() {
  unsigned char* to;
  if (const op_error f = distant(remote_write, &to)) return f;
  store_bytes(payload_, to, op_.inlined.data(), op_.bytes);
  moved_ = op_.bytes;
  return {};
}

// One piece that lies in one span. Keys are looked up anew: memory may go between two pieces.
op_error shm_executor::move(std::uint64_t budget) {
  std::uint64_t into = moved_;
  std::uint32_t i = 0;
  while (into >= op_.spans[i].bytes) into -= op_.spans[i++].bytes;
  const std::uint64_t piece = std::min<std::uint64_t>(budget, op_.spans[i].bytes - into);
  unsigned char* mine;
  unsigned char* theirs;
  if (const op_error f = find_local(local_, op_.spans[i], local_right(op_.what), &mine)) return f;
  if (const op_error f = distant(remote_right(op_.what), &theirs)) return f;
  if (op_.what == verb::write)
    payload_.copy(theirs + moved_, mine + into, piece);
  else
    payload_.copy(mine + into, theirs + moved_, piece);
  moved_ += piece;
  return {};
}

op_error shm_executor::change() {
  unsigned char *at, *result;
  if (const op_error f = distant(remote_atomic, &at)) return f;
  if (const op_error f = find_local(local_, op_.spans[0], local_write, &result)) return f;
  store_result(payload_, result, op_.change, change_word(payload_, at, op_.change));
  moved_ = op_.bytes;
  return {};
}

op_error shm_executor::step(std::uint64_t budget) {
  if (op_.what == verb::nop || op_.bytes == 0) return {};
  if (!gate_.enter()) return {outcome::retry_exceeded, rule::not_connected};
  const op_error f = step_inside(budget);
  gate_.leave();
  return f;
}

op_error shm_executor::step_inside(std::uint64_t budget) {
  if (op_.what == verb::atomic) return change();
  // Where each copy is a call to the GPU, small pieces would cost more than the copying.
  return op_.is_inline ? write_inline() : move(payload_.direct ? std::min(budget, k_piece) : budget);
}

// The data is there: now the peer's reader hears of it.
void shm_executor::deliver_immediate() {
  if (!gate_.enter()) {
    how_ = {outcome::retry_exceeded, rule::not_connected};
    stage_ = stage::over;
    return;
  }
  const bool delivered = deliver_(op_.immediate, op_.bytes);
  gate_.leave();
  if (!delivered) {
    if (rnr_retries_ == k_rnr_for_ever || clock::now() - deliver_since_ <= rnr_retries_ * k_rnr_timer) return;
    how_ = {outcome::rnr_retry_exceeded, rule::none};
  }
  stage_ = stage::over;
}

std::uint64_t shm_executor::advance(std::uint64_t budget) {
  if (stage_ == stage::delivering) deliver_immediate();
  if (stage_ == stage::over || stage_ == stage::idle || stage_ == stage::delivering) return 0;
  const std::uint64_t before = moved_;
  how_ = step(budget);
  if (how_ || moved_ >= op_.bytes) {
    if (!how_) payload_.fence();
    stage_ = stage::over;
    if (!how_ && op_.has_immediate) {
      stage_ = stage::delivering;
      deliver_since_ = clock::now();
      deliver_immediate();
    }
  }
  return std::max<std::uint64_t>(moved_ - before, 1);
}

bool shm_executor::ended(op_error* how) {
  if (stage_ != stage::over) return false;
  *how = how_;
  stage_ = stage::idle;
  return true;
}

// --- The fabric --------------------------------------------------------------------------------------

void shm_fabric::adopt(int pe, std::uint32_t rkey, const region& what) {
  auto& table = remote_[pe];
  if (table == nullptr) table = std::make_shared<key_table>(0);
  if (!table->adopt(rkey, what))
    fail(XIO_ERR_PEER, "PE {} opened {} bytes at {:#x} under key {:#x}, which cannot be; run the same XIO on every PE",
         pe, what.bytes, what.base, rkey);
}

void shm_fabric::drop(int pe, std::uint32_t rkey) {
  if (const auto found = remote_.find(pe); found != remote_.end()) found->second->remove(rkey);
}

key_pair shm_fabric::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  unsigned char* const at = place_ ? place_(base, bytes) : static_cast<unsigned char*>(base);
  const std::uint32_t key = keys_.add(region{reinterpret_cast<std::uint64_t>(base), bytes, at, allowed});
  if (key == 0)
    fail(XIO_ERR_ARG,
         "{} bytes at {} cannot be registered with the software NIC: the range is empty or leaves the address space",
         bytes, base);
  return {key, key};
}

std::unique_ptr<executor> shm_fabric::connect(std::uint32_t number, int pe, const device_address& remote_queue,
                                              std::uint32_t) {
  const auto remote = remote_.find(pe);
  shm_executor::immediate_delivery deliver;
  if (handler_)
    deliver = [this, number](std::uint32_t immediate, std::uint64_t bytes) {
      return handler_(number, immediate, bytes);
    };
  return std::make_unique<shm_executor>(payload_, keys_, remote == remote_.end() ? nullptr : remote->second,
                                        std::move(deliver), rnr_retries_, gates_.find(pe, remote_queue));
}

}  // namespace xio::proxy
