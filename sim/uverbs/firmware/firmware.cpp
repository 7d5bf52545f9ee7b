// SPDX-License-Identifier: MIT
#include "uverbs/firmware/firmware.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "uverbs/firmware/fields.hpp"

namespace uverbs::firmware {
namespace {

// Lengths of commands and replies without the lists of pages that nobody gives: a command that is shorter is refused.
struct lengths {
  std::uint32_t opcode;
  std::size_t in, out;
};
constexpr lengths k_lengths[] = {
    {op_create_cq, 0x110, 16}, {op_destroy_cq, 16, 16},     {op_query_cq, 16, 0x110},    {op_create_qp, 0x110, 16},
    {op_destroy_qp, 16, 16},   {op_rst2init_qp, 0x110, 16}, {op_init2rtr_qp, 0x110, 16}, {op_rtr2rts_qp, 0x110, 16},
    {op_2err_qp, 16, 16},      {op_2rst_qp, 16, 16},        {op_query_qp, 16, 0x110},
};

constexpr std::uint32_t k_in_cqc = k_cqc.at, k_in_qpc = k_qpc.at, k_in_path = k_qpc.at + k_path.at;

using list = std::vector<placed>;

list with_head(list more, bool mask) {
  more.push_back({&head::opcode, 0});
  more.push_back({&head::uid, 0});
  if (mask) more.push_back({&head::opt_param_mask, 0});
  return more;
}

list in_context(std::initializer_list<const field*> context, std::initializer_list<const field*> path) {
  list out;
  for (const field* f : context) out.push_back({f, k_in_qpc});
  for (const field* f : path) out.push_back({f, k_in_path});
  out.push_back({&head::object, 0});
  return out;
}

// The fields that a command takes; all else must be 0.
list fields_of(std::uint32_t opcode) {
  switch (opcode) {
    case op_create_cq: {
      list out{{&create_cq::umem_offset, 0}, {&create_cq::umem_id, 0}, {&create_cq::umem_valid, 0}};
      for (const field* f : {&cqc::dbr_umem_valid, &cqc::cqe_sz, &cqc::cc, &cqc::oi, &cqc::dbr_umem_id,
                             &cqc::log_cq_size, &cqc::uar_page, &cqc::c_eqn, &cqc::dbr_addr})
        out.push_back({f, k_in_cqc});
      return with_head(std::move(out), false);
    }
    case op_create_qp: {
      list out{{&create_qp::umem_offset, 0}, {&create_qp::umem_id, 0}, {&create_qp::umem_valid, 0}};
      for (const field* f : {&qpc::st, &qpc::pm_state, &qpc::pd, &qpc::log_rq_size, &qpc::log_rq_stride,
                             &qpc::log_sq_size, &qpc::ts_format, &qpc::uar_page, &qpc::user_index, &qpc::cqn_snd,
                             &qpc::cqn_rcv, &qpc::dbr_addr, &qpc::rq_type, &qpc::dbr_umem_valid, &qpc::dbr_umem_id})
        out.push_back({f, k_in_qpc});
      return with_head(std::move(out), false);
    }
    case op_rst2init_qp:
      return with_head(in_context({&qpc::pm_state, &qpc::rre, &qpc::rwe, &qpc::rae, &qpc::atomic_mode},
                                  {&ads::vhca_port_num, &ads::pkey_index}),
                       true);
    case op_init2rtr_qp:
      return with_head(
          in_context({&qpc::mtu, &qpc::log_msg_max, &qpc::remote_qpn, &qpc::next_rcv_psn, &qpc::min_rnr_nak,
                      &qpc::log_rra_max, &qpc::rre, &qpc::rwe, &qpc::rae, &qpc::atomic_mode},
                     {&ads::vhca_port_num, &ads::pkey_index, &ads::hop_limit, &ads::tclass, &ads::src_addr_index,
                      &ads::rgid, &ads::grh, &ads::rlid, &ads::sl, &ads::eth_prio, &ads::dscp, &ads::udp_sport,
                      &ads::rmac_47_32, &ads::rmac_31_0}),
          true);
    case op_rtr2rts_qp:
      return with_head(
          in_context({&qpc::retry_count, &qpc::rnr_retry, &qpc::log_sra_max, &qpc::next_send_psn}, {&ads::ack_timeout}),
          true);
    default: return with_head({{&head::object, 0}}, false);
  }
}

}  // namespace

verdict processor::execute(const unsigned char* in, std::size_t in_bytes, unsigned char* out, std::size_t out_bytes) {
  std::memset(out, 0, out_bytes);
  const verdict v = run(in, in_bytes, out, out_bytes);
  put(out, reply::status, static_cast<std::uint8_t>(v.what));
  put(out, reply::syndrome, static_cast<std::uint32_t>(v.why));
  return v;
}

verdict processor::run(const unsigned char* in, std::size_t in_bytes, unsigned char* out, std::size_t out_bytes) {
  if (in_bytes < 16) return {status::bad_input_length, rule::input_length};
  if (out_bytes < 16) return {status::bad_output_length, rule::output_length};
  const auto opcode = static_cast<std::uint32_t>(get(in, head::opcode));
  const lengths* length = nullptr;
  for (const lengths& row : k_lengths)
    if (row.opcode == opcode) length = &row;
  if (length == nullptr || get(in, head::op_mod) != 0) return {status::bad_op, rule::opcode};
  if (in_bytes < length->in) return {status::bad_input_length, rule::input_length};
  if (out_bytes < length->out) return {status::bad_output_length, rule::output_length};
  if (const auto found = refused_.find(opcode); found != refused_.end()) return found->second;
  if (const long bit = first_foreign_bit(in, in_bytes, fields_of(opcode)); bit >= 0) {
    if (std::getenv("XIO_TEST_UVERBS_LOG") != nullptr)
      std::fprintf(stderr, "simulated firmware: command %#x sets bit %#lx, which it does not take\n", opcode,
                   static_cast<unsigned long>(bit));
    return {status::bad_param, rule::reserved_bits};
  }
  switch (opcode) {
    case op_create_cq: return create_cq(in, out);
    case op_create_qp: return create_qp(in, out);
    case op_query_cq:
    case op_query_qp: return query(opcode, in, out);
    case op_destroy_cq:
    case op_destroy_qp: return destroy(opcode, in);
    default: return modify(opcode, in);
  }
}

namespace {

std::uint32_t of_cqc(const unsigned char* in, const field& f) {
  return static_cast<std::uint32_t>(get(in, f, k_in_cqc));
}
std::uint32_t of_qpc(const unsigned char* in, const field& f) {
  return static_cast<std::uint32_t>(get(in, f, k_in_qpc));
}
std::uint32_t of_path(const unsigned char* in, const field& f) {
  return static_cast<std::uint32_t>(get(in, f, k_in_path));
}

unsigned char* within(const umem* m, std::uint64_t offset, std::uint64_t bytes, std::uint64_t alignment) {
  const bool fits = m != nullptr && offset % alignment == 0 && offset <= m->bytes && bytes <= m->bytes - offset;
  return fits ? m->at + offset : nullptr;
}

constexpr std::uint64_t k_page = 4096, k_slot = 64, k_entry = 64, k_record = 8;

}  // namespace

verdict processor::create_cq(const unsigned char* in, unsigned char* out) {
  const std::uint32_t log = of_cqc(in, cqc::log_cq_size);
  if (log > limits_.log_max_cq_size) return {status::exceeds_limit, rule::cq_size};
  if (of_cqc(in, cqc::cqe_sz) != 0) return {status::bad_param, rule::cqe_size};
  if (of_cqc(in, cqc::cc) != 0 && of_cqc(in, cqc::oi) == 0) return {status::bad_param, rule::collapsed};
  if (of_cqc(in, cqc::c_eqn) != k_event_queue) return {status::bad_resource, rule::event_queue};
  const std::uint32_t uar = of_cqc(in, cqc::uar_page);
  if (!resources_.has_uar(uar)) return {status::bad_resource, rule::uar_page};
  const umem* entries = resources_.find_umem(static_cast<std::uint32_t>(get(in, create_cq::umem_id)));
  unsigned char* at = within(entries, get(in, create_cq::umem_offset), k_entry << log, k_page);
  if (get(in, create_cq::umem_valid) == 0 || at == nullptr) return {status::bad_resource, rule::buffer_umem};
  const umem* record = resources_.find_umem(of_cqc(in, cqc::dbr_umem_id));
  unsigned char* words = within(record, get(in, cqc::dbr_addr, k_in_cqc), k_record, k_record);
  if (of_cqc(in, cqc::dbr_umem_valid) == 0 || words == nullptr) return {status::bad_resource, rule::record_umem};
  queues_[next_cq_] = {log, uar, at, reinterpret_cast<std::uint32_t*>(words), of_cqc(in, cqc::cc) != 0};
  put(out, reply::object, next_cq_++);
  return {};
}

// A receive queue lies in front of the send queue, in the same memory.
verdict processor::check_receives(const unsigned char* in, rings* memory) const {
  const std::uint32_t kind = of_qpc(in, qpc::rq_type), log = of_qpc(in, qpc::log_rq_size),
                      log_stride = of_qpc(in, qpc::log_rq_stride);
  const auto found = queues_.find(of_qpc(in, qpc::cqn_rcv));
  if (found == queues_.end()) return {status::bad_resource, rule::receive_cq};
  if (kind == 3) return {log != 0 || log_stride != 0 ? status::bad_param : status::ok, rule::rq_size};  // ZERO_SIZE_RQ
  if (kind != 0) return {status::bad_param, rule::receive_kind};                                        // REGULAR
  if (log > limits_.log_max_qp_size) return {status::exceeds_limit, rule::rq_size};
  if (found->second.collapsed || found->second.log_entries < log) return {status::bad_resource, rule::receive_cq};
  memory->receive_depth = 1u << log;
  memory->receive_cq_depth = 1u << found->second.log_entries;
  memory->receive_completions = found->second.entries;
  memory->receive_cq_record = found->second.record;
  return {};
}

verdict processor::create_qp(const unsigned char* in, unsigned char* out) {
  if (get(in, head::object) != 0) return {status::bad_param, rule::reserved_bits};
  if (of_qpc(in, qpc::st) != 0) return {status::bad_param, rule::service_type};          // RC
  if (of_qpc(in, qpc::pm_state) != 3) return {status::bad_param, rule::path_migration};  // MIGRATED
  if (!resources_.has_domain(of_qpc(in, qpc::pd))) return {status::bad_resource, rule::protection_domain};
  const std::uint32_t cqn = of_qpc(in, qpc::cqn_snd);
  if (!queues_.contains(cqn)) return {status::bad_resource, rule::send_cq};
  queue_pair q{};
  if (const verdict v = check_receives(in, &q.memory)) return v;
  const std::uint64_t receives = std::uint64_t{q.memory.receive_depth} << (of_qpc(in, qpc::log_rq_stride) + 4);
  const std::uint32_t log = of_qpc(in, qpc::log_sq_size), uar = of_qpc(in, qpc::uar_page);
  if (log > limits_.log_max_qp_size) return {status::exceeds_limit, rule::sq_size};
  if (of_qpc(in, qpc::ts_format) != (limits_.real_time_clock_only ? 1u : 0u))
    return {status::bad_param, rule::clock_format};
  if (!resources_.has_uar(uar)) return {status::bad_resource, rule::uar_page};
  const umem* slots = resources_.find_umem(static_cast<std::uint32_t>(get(in, create_qp::umem_id)));
  unsigned char* at = within(slots, get(in, create_qp::umem_offset), receives + (k_slot << log), k_page);
  if (get(in, create_qp::umem_valid) == 0 || at == nullptr) return {status::bad_resource, rule::buffer_umem};
  const umem* record = resources_.find_umem(of_qpc(in, qpc::dbr_umem_id));
  unsigned char* words = within(record, get(in, qpc::dbr_addr, k_in_qpc), k_record, k_record);
  if (of_qpc(in, qpc::dbr_umem_valid) == 0 || words == nullptr) return {status::bad_resource, rule::record_umem};
  q.memory.slots = at + receives;
  q.memory.depth = 1u << log;
  q.memory.receive_record = reinterpret_cast<std::uint32_t*>(words);
  q.memory.send_record = reinterpret_cast<std::uint32_t*>(words) + 1;
  q.memory.completions = queues_[cqn].entries;
  q.memory.uar_page = uar;
  q.cq = cqn;
  q.receive_cq = of_qpc(in, qpc::cqn_rcv);
  ++queues_[cqn].users;
  ++queues_[q.receive_cq].users;
  pairs_[next_qp_] = q;
  put(out, reply::object, next_qp_);
  next_qp_ += 5;
  return {};
}

namespace {

// Linux include/linux/mlx5/qp.h: what may be set beside what a transition demands.
constexpr std::uint32_t k_rre = 1 << 1, k_rae = 1 << 2, k_rwe = 1 << 3, k_pkey = 1 << 4;

struct transition {
  std::uint32_t opcode;
  qp_state from, to;
  std::uint32_t optional;
};
constexpr transition k_transitions[] = {
    {op_rst2init_qp, qp_state::reset, qp_state::init, k_rre | k_rae | k_rwe | k_pkey},
    {op_init2rtr_qp, qp_state::init, qp_state::rtr, k_rre | k_rae | k_rwe | k_pkey},
    {op_rtr2rts_qp, qp_state::rtr, qp_state::rts, k_rre | k_rae | k_rwe},
};

std::uint32_t rights_of(const unsigned char* in) {
  return (of_qpc(in, qpc::rre) != 0 ? 4u : 0u) | (of_qpc(in, qpc::rwe) != 0 ? 8u : 0u) |
         (of_qpc(in, qpc::rae) != 0 ? 16u : 0u);
}

}  // namespace

verdict processor::modify(std::uint32_t opcode, const unsigned char* in) {
  const auto qpn = static_cast<std::uint32_t>(get(in, head::object));
  const auto found = pairs_.find(qpn);
  if (found == pairs_.end()) return {status::bad_resource, rule::object_number};
  queue_pair& q = found->second;
  if (opcode == op_2err_qp || opcode == op_2rst_qp) {
    nic_.stop(qpn);
    q.state = opcode == op_2err_qp ? qp_state::error : qp_state::reset;
    return {};
  }
  for (const transition& t : k_transitions) {
    if (t.opcode != opcode) continue;
    if (q.state != t.from) return {status::bad_qp_state, rule::qp_state};
    if ((get(in, head::opt_param_mask) & ~std::uint64_t{t.optional}) != 0)
      return {status::bad_param, rule::optional_mask};
    const verdict v = opcode == op_rst2init_qp   ? to_init(q, in)
                      : opcode == op_init2rtr_qp ? to_rtr(q, in)
                                                 : to_rts(qpn, q, in);
    if (v) return v;
    q.state = t.to;
    if (q.state == qp_state::rts) nic_.start(qpn, q);
    return {};
  }
  return {status::bad_op, rule::opcode};
}

verdict processor::to_init(queue_pair& q, const unsigned char* in) {
  if (of_qpc(in, qpc::pm_state) != 3) return {status::bad_param, rule::path_migration};
  if (of_path(in, ads::vhca_port_num) != 1) return {status::bad_param, rule::port};
  if (of_path(in, ads::pkey_index) != 0) return {status::bad_index, rule::pkey_index};
  const std::uint32_t mode = of_qpc(in, qpc::atomic_mode);
  if (mode > 3) return {status::bad_param, rule::atomic_mode};
  q.may = rights_of(in);
  return {};
}

// Of a RoCE port: the manual's ads for Ethernet, where LID, SL and the GRH bit are reserved.
verdict processor::check_path(const unsigned char* in) const {
  if (of_path(in, ads::vhca_port_num) != 1) return {status::bad_param, rule::port};
  if (of_path(in, ads::pkey_index) != 0) return {status::bad_index, rule::pkey_index};
  if (of_path(in, ads::grh) != 0 || of_path(in, ads::rlid) != 0 || of_path(in, ads::sl) != 0)
    return {status::bad_param, rule::infiniband_field};
  if (!resources_.has_gid(of_path(in, ads::src_addr_index))) return {status::bad_index, rule::gid_index};
  if (of_path(in, ads::hop_limit) == 0) return {status::bad_param, rule::hop_limit};
  // IB_ROCE_UDP_ENCAP_VALID_PORT_MIN (rdma/ib_verbs.h)
  if (of_path(in, ads::udp_sport) < 0xc000) return {status::bad_param, rule::source_port};
  unsigned char mac[6];
  if (!resources_.mac_of(in + (k_in_path + ads::rgid.at) / 8, mac)) return {status::bad_param, rule::remote_gid};
  if (std::memcmp(mac, in + (k_in_path + ads::rmac_47_32.at) / 8, sizeof mac) != 0)
    return {status::bad_param, rule::remote_mac};
  return {};
}

verdict processor::to_rtr(queue_pair& q, const unsigned char* in) {
  if (const verdict v = check_path(in)) return v;
  const std::uint32_t mtu = of_qpc(in, qpc::mtu), log_message = of_qpc(in, qpc::log_msg_max);
  if (mtu < 1 || mtu > 5) return {status::bad_param, rule::mtu};
  if (log_message > 30) return {status::exceeds_limit, rule::message_size};
  if (of_qpc(in, qpc::log_rra_max) > limits_.log_max_depth) return {status::exceeds_limit, rule::responder_depth};
  if (of_qpc(in, qpc::atomic_mode) > 3) return {status::bad_param, rule::atomic_mode};
  q.remote_qpn = of_qpc(in, qpc::remote_qpn);
  q.receive_psn = of_qpc(in, qpc::next_rcv_psn);
  std::memcpy(q.remote_gid.data(), in + (k_in_path + ads::rgid.at) / 8, q.remote_gid.size());
  // Those of INIT stay where the mask does not name them.
  const std::uint64_t mask = get(in, head::opt_param_mask);
  const std::uint32_t set =
      ((mask & k_rre) != 0 ? 4u : 0u) | ((mask & k_rwe) != 0 ? 8u : 0u) | ((mask & k_rae) != 0 ? 16u : 0u);
  q.may = (q.may & ~set) | (rights_of(in) & set);
  return {};
}

verdict processor::to_rts(std::uint32_t, queue_pair& q, const unsigned char* in) {
  if (of_qpc(in, qpc::log_sra_max) > limits_.log_max_depth) return {status::exceeds_limit, rule::initiator_depth};
  q.send_psn = of_qpc(in, qpc::next_send_psn);
  q.timeout = of_path(in, ads::ack_timeout);
  q.retries = of_qpc(in, qpc::retry_count);
  q.rnr_retries = of_qpc(in, qpc::rnr_retry);
  return {};
}

verdict processor::query(std::uint32_t opcode, const unsigned char* in, unsigned char* out) const {
  const auto number = static_cast<std::uint32_t>(get(in, head::object));
  if (opcode == op_query_cq) {
    const auto found = queues_.find(number);
    if (found == queues_.end()) return {status::bad_resource, rule::object_number};
    put(out, cqc::log_cq_size, found->second.log_entries, k_queried_cqc.at);
    put(out, cqc::uar_page, found->second.uar_page, k_queried_cqc.at);
    return {};
  }
  const queue_pair* q = find(number);
  if (q == nullptr) return {status::bad_resource, rule::object_number};
  put(out, qpc::state, static_cast<std::uint8_t>(q->state), k_queried_qpc.at);
  put(out, qpc::remote_qpn, q->remote_qpn, k_queried_qpc.at);
  put(out, qpc::next_send_psn, q->send_psn, k_queried_qpc.at);
  put(out, qpc::next_rcv_psn, q->receive_psn, k_queried_qpc.at);
  put(out, qpc::cqn_snd, q->cq, k_queried_qpc.at);
  return {};
}

verdict processor::destroy(std::uint32_t opcode, const unsigned char* in) {
  const auto number = static_cast<std::uint32_t>(get(in, head::object));
  if (opcode == op_destroy_cq) {
    const auto found = queues_.find(number);
    if (found == queues_.end()) return {status::bad_resource, rule::object_number};
    if (found->second.users != 0) return {status::bad_resource_state, rule::still_used};
    queues_.erase(found);
    return {};
  }
  const auto found = pairs_.find(number);
  if (found == pairs_.end()) return {status::bad_resource, rule::object_number};
  nic_.stop(number);
  --queues_[found->second.cq].users;
  --queues_[found->second.receive_cq].users;
  pairs_.erase(found);
  return {};
}

}  // namespace uverbs::firmware
