// SPDX-License-Identifier: MIT
#include "proxy/nic.hpp"

#include "base/error.hpp"
#include "proxy/queue_numbers.hpp"

namespace xio::proxy {

nic::nic(std::unique_ptr<fabric> carried_by, std::uint32_t seed)
    : fabric_(std::move(carried_by)), next_number_(first_number(seed)) {}

nic::~nic() = default;

key_pair nic::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  const auto hold = visit();
  return fabric_->register_memory(base, bytes, allowed);
}

void nic::unregister_memory(const key_pair& keys) {
  const auto hold = visit();
  fabric_->unregister_memory(keys);
}

device_address nic::get_address() {
  const auto hold = visit();
  return fabric_->get_address();
}

void nic::connect_peers(const std::vector<device_address>& all) {
  const auto hold = visit();
  fabric_->connect_peers(all);
}

std::uint32_t nic::create_queue(const queue_maker& make) {
  const auto hold = visit();
  if (has_failed())
    fail(XIO_ERR_IO,
         "{}: the device has failed, and no queue pair can be made on it; recover an older ctx by xio_ctx_recover, "
         "which opens it again",
         fabric_->name());
  while (next_number_ < k_first_number || queues_.find(next_number_) != nullptr)
    next_number_ = (next_number_ + k_number_step) & k_number_mask;
  const std::uint32_t number = next_number_;
  next_number_ = (next_number_ + k_number_step) & k_number_mask;
  queues_.add(std::make_unique<queue_pair>(number, make(number)));
  return number;
}

device_address nic::get_queue_address(std::uint32_t number, int pe) {
  const auto hold = visit();
  return fabric_->get_queue_address(number, pe);
}

void nic::connect(std::uint32_t number, int pe, const device_address& remote, std::uint32_t remote_number) {
  const auto hold = visit();
  if (queue_pair* q = queues_.find(number)) q->connect(fabric_->connect(number, pe, remote, remote_number), pe);
}

void nic::destroy_queue(std::uint32_t number) {
  const auto hold = visit();
  if (queues_.erase(number)) fabric_->forget(number);
}

void nic::cut_off_queue(std::uint32_t number) {
  const auto hold = visit();
  if (queues_.erase(number)) fabric_->cut_off(number);
}

void nic::set_faults(fault_plan* faults) {
  const auto hold = visit();
  faults_ = faults;
}

bool nic::at_rest(sleeper::descriptors& found) {
  if (turns_.visited()) return false;
  const std::unique_lock hold(turns_.lock());
  return fabric_->at_rest(found) && queues_.all_rest([&](queue_pair& q) { return q.turn(faults_); });
}

bool nic::poll() {
  if (turns_.visited()) return true;
  const std::unique_lock hold(turns_.lock());
  bool worked = fabric_->poll();
  if (faults_ != nullptr && faults_->is_fatal()) failed_.store(true, std::memory_order_release);
  if (has_failed() && !broken_off_) {
    broken_off_ = true;
    queues_.for_each([](queue_pair& q) { q.break_off({outcome::local_qp_operation, rule::device_failed}); });
  }
  worked |= queues_.poll([&](queue_pair& q) { return q.turn(faults_); });
  return worked;
}

}  // namespace xio::proxy
