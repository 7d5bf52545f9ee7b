// SPDX-License-Identifier: MIT
// The firmware takes what libxio's commands say, and refuses each broken rule with its status and syndrome.
#include "uverbs/firmware/firmware.hpp"
#include "../gtest.hpp"
#include "transport/rdma/mlx5/commands.hpp"
#include "uverbs/firmware/fields.hpp"

namespace fw = uverbs::firmware;
namespace mlx5 = xio::rdma::mlx5;

namespace {

constexpr unsigned char k_mac[6] = {2, 0, 0, 0, 0, 2};

struct parts final : fw::resources, fw::nic {
  std::vector<unsigned char> memory = std::vector<unsigned char>(1 << 16);
  std::map<std::uint32_t, fw::umem> umems{
      {1, {memory.data(), 16384}}, {2, {memory.data(), 16384}}, {3, {memory.data(), 4096}}};
  std::vector<std::uint32_t> started, stopped;

  const fw::umem* find_umem(std::uint32_t id) const override {
    const auto found = umems.find(id);
    return found == umems.end() ? nullptr : &found->second;
  }
  bool has_uar(std::uint32_t page) const override { return page == 0x21; }
  bool has_domain(std::uint32_t pdn) const override { return pdn == 0x77; }
  bool has_gid(std::uint32_t index) const override { return index == 0; }
  bool mac_of(const unsigned char* gid, unsigned char* mac) const override {
    std::memcpy(mac, k_mac, sizeof k_mac);
    return gid[15] == 2;
  }
  void start(std::uint32_t qpn, const fw::queue_pair&) override { started.push_back(qpn); }
  void stop(std::uint32_t qpn) override { stopped.push_back(qpn); }
};

struct firmware_test : testing::Test {
  parts p;
  fw::processor f{p, p};
  mlx5::reply reply{};

  fw::verdict run(const mlx5::command& c) { return f.execute(c.data(), c.size(), reply.data(), reply.size()); }
  std::uint32_t made(const mlx5::command& c) {
    const fw::verdict v = run(c);
    EXPECT_EQ(v.what, fw::status::ok) << std::hex << static_cast<unsigned>(v.why);
    return mlx5::made_number(reply);
  }
  // Refused by this rule once this field has this value, and the reply says so.
  void refused(mlx5::command c, const fw::field& field, std::uint32_t base, std::uint64_t value, fw::status what,
               fw::rule why) {
    fw::put(c.data(), field, value, base);
    const fw::verdict v = run(c);
    EXPECT_EQ(v.what, what) << field.structure << '.' << field.name;
    EXPECT_EQ(v.why, why) << field.structure << '.' << field.name << std::hex << ' ' << static_cast<unsigned>(v.why);
    EXPECT_EQ(mlx5::status_of(reply), static_cast<std::uint32_t>(what));
  }

  mlx5::command cq() const { return mlx5::create_cq({8, 0x21, fw::k_event_queue, 1, {3, 0}}); }
  mlx5::command qp(std::uint32_t cqn) const { return mlx5::create_qp({8, 0x21, 0x77, cqn, 2, {3, 64}, false}); }
  static mlx5::path_plan path() {
    mlx5::path_plan plan{};
    plan.port = 1;
    plan.mtu = 5;
    plan.hop_limit = 64;
    plan.timeout = 14;
    plan.retry = plan.rnr_retry = 7;
    plan.responder_depth = plan.initiator_depth = 16;
    plan.source_port = 0xc123;
    std::memcpy(plan.remote_mac.data(), k_mac, sizeof k_mac);
    return plan;
  }
  static xio::proxy::verbs_address end(unsigned char host) {
    xio::proxy::verbs_address a{};
    a.link = xio::proxy::link_layer::ethernet;
    a.kind = xio::proxy::gid_kind::roce_v2;
    a.port = 1;
    a.qpn = 0x200;
    a.psn = 0x1234;
    a.address[15] = host;
    return a;
  }
};

constexpr std::uint32_t k_cqc = fw::k_cqc.at, k_qpc = fw::k_qpc.at, k_ads = fw::k_qpc.at + fw::k_path.at;

}  // namespace

TEST_F(firmware_test, a_queue_pair_goes_to_rts_and_away) {
  const std::uint32_t cqn = made(cq()), qpn = made(qp(cqn));
  made(mlx5::rst2init(qpn, path()));
  EXPECT_EQ(f.find(qpn)->may, 4u | 8u | 16u);
  made(mlx5::init2rtr(qpn, path(), end(1), end(2)));
  EXPECT_TRUE(p.started.empty());
  made(mlx5::rtr2rts(qpn, path(), 0x55));
  EXPECT_PAIRS((p.started, std::vector<std::uint32_t>{qpn}), (f.find(qpn)->remote_qpn, 0x200u),
               (f.find(qpn)->send_psn, 0x55u));
  unsigned char destroy[16] = {};
  fw::put(destroy, fw::head::opcode, fw::op_destroy_cq);
  fw::put(destroy, fw::head::object, cqn);
  EXPECT_EQ(f.execute(destroy, 16, reply.data(), 16).why, fw::rule::still_used);
  fw::put(destroy, fw::head::opcode, fw::op_destroy_qp);
  fw::put(destroy, fw::head::object, qpn);
  EXPECT_FALSE(f.execute(destroy, 16, reply.data(), 16));
  EXPECT_EQ(p.stopped, std::vector<std::uint32_t>{qpn});
}

TEST_F(firmware_test, transitions_go_in_order) {
  const std::uint32_t qpn = made(qp(made(cq())));
  EXPECT_EQ(run(mlx5::init2rtr(qpn, path(), end(1), end(2))).what, fw::status::bad_qp_state);
  EXPECT_EQ(run(mlx5::rtr2rts(qpn, path(), 1)).what, fw::status::bad_qp_state);
  made(mlx5::rst2init(qpn, path()));
  EXPECT_EQ(run(mlx5::rst2init(qpn, path())).what, fw::status::bad_qp_state);
  EXPECT_EQ(run(mlx5::rst2init(qpn + 1, path())).why, fw::rule::object_number);
}

TEST_F(firmware_test, completion_queues_are_checked) {
  using fw::rule, fw::status;
  refused(cq(), fw::cqc::log_cq_size, k_cqc, 23, status::exceeds_limit, rule::cq_size);
  refused(cq(), fw::cqc::log_cq_size, k_cqc, 9, status::bad_resource, rule::buffer_umem);
  refused(cq(), fw::cqc::oi, k_cqc, 0, status::bad_param, rule::collapsed);
  refused(cq(), fw::cqc::c_eqn, k_cqc, 4, status::bad_resource, rule::event_queue);
  refused(cq(), fw::cqc::uar_page, k_cqc, 4, status::bad_resource, rule::uar_page);
  refused(cq(), fw::cqc::dbr_addr, k_cqc, 4096, status::bad_resource, rule::record_umem);
  refused(cq(), fw::cqc::dbr_addr, k_cqc, 4, status::bad_resource, rule::record_umem);
  refused(cq(), fw::create_cq::umem_id, 0, 9, status::bad_resource, rule::buffer_umem);
  refused(cq(), {"cqc", "reserved_at_c", 0xc, 1}, k_cqc, 1, status::bad_param, rule::reserved_bits);
}

TEST_F(firmware_test, queue_pairs_are_checked) {
  using fw::rule, fw::status;
  const mlx5::command c = qp(made(cq()));
  refused(c, fw::qpc::st, k_qpc, 3, status::bad_param, rule::service_type);
  refused(c, fw::qpc::pd, k_qpc, 3, status::bad_resource, rule::protection_domain);
  refused(c, fw::qpc::cqn_snd, k_qpc, 3, status::bad_resource, rule::send_cq);
  refused(c, fw::qpc::cqn_rcv, k_qpc, 3, status::bad_resource, rule::receive_cq);
  refused(c, fw::qpc::rq_type, k_qpc, 1, status::bad_param, rule::receive_kind);
  refused(c, fw::qpc::rq_type, k_qpc, 0, status::bad_resource, rule::receive_cq);  // which is collapsed
  refused(c, fw::qpc::log_rq_size, k_qpc, 8, status::bad_param, rule::rq_size);
  refused(c, fw::qpc::ts_format, k_qpc, 1, status::bad_param, rule::clock_format);
  refused(c, fw::qpc::log_sq_size, k_qpc, 9, status::bad_resource, rule::buffer_umem);
  refused(c, fw::qpc::dbr_umem_id, k_qpc, 9, status::bad_resource, rule::record_umem);
  refused(c, fw::create_qp::umem_valid, 0, 0, status::bad_resource, rule::buffer_umem);
  refused(c, {"qpc", "rlky", 0x5b, 1}, k_qpc, 1, status::bad_param, rule::reserved_bits);
  EXPECT_EQ(f.execute(c.data(), 64, reply.data(), 16).what, status::bad_input_length);
}

TEST_F(firmware_test, receive_queues_are_checked) {
  using fw::rule, fw::status;
  const std::uint32_t cqn = made(cq()),
                      receive_cqn = made(mlx5::create_cq({8, 0x21, fw::k_event_queue, 1, {3, 128}, false}));
  const auto plan = [&](std::uint32_t log_slots) {
    return mlx5::create_qp({log_slots, 0x21, 0x77, cqn, 2, {3, 64}, false, 8, receive_cqn});
  };
  const std::uint32_t qpn = made(plan(7));
  const fw::rings& r = f.find(qpn)->memory;
  EXPECT_PAIRS((r.slots, p.memory.data() + 256 * 16), (r.receive_depth, 256u),
               (reinterpret_cast<const unsigned char*>(r.receive_record), p.memory.data() + 64),
               (reinterpret_cast<const unsigned char*>(r.receive_cq_record), p.memory.data() + 128));
  // Both queues must fit into the memory.
  EXPECT_EQ(run(plan(8)).why, rule::buffer_umem);
  refused(plan(7), fw::qpc::log_rq_stride, k_qpc, 2, status::bad_resource, rule::buffer_umem);
  refused(plan(7), fw::qpc::log_rq_size, k_qpc, 9, status::bad_resource, rule::receive_cq);
}

TEST_F(firmware_test, paths_are_checked) {
  using fw::rule, fw::status;
  const std::uint32_t qpn = made(qp(made(cq())));
  refused(mlx5::rst2init(qpn, path()), fw::ads::vhca_port_num, k_ads, 2, status::bad_param, rule::port);
  made(mlx5::rst2init(qpn, path()));
  const mlx5::command c = mlx5::init2rtr(qpn, path(), end(1), end(2));
  refused(c, fw::ads::src_addr_index, k_ads, 3, status::bad_index, rule::gid_index);
  refused(c, fw::ads::pkey_index, k_ads, 1, status::bad_index, rule::pkey_index);
  refused(c, fw::ads::rmac_31_0, k_ads, 1, status::bad_param, rule::remote_mac);
  refused(c, fw::ads::udp_sport, k_ads, 4791, status::bad_param, rule::source_port);
  refused(c, fw::ads::rlid, k_ads, 1, status::bad_param, rule::infiniband_field);
  refused(c, fw::qpc::mtu, k_qpc, 0, status::bad_param, rule::mtu);
  refused(c, fw::qpc::log_rra_max, k_qpc, 5, status::exceeds_limit, rule::responder_depth);
  refused(c, fw::head::opt_param_mask, 0, 1, status::bad_param, rule::optional_mask);
  made(c);
  refused(mlx5::rtr2rts(qpn, path(), 1), fw::qpc::log_sra_max, k_qpc, 5, status::exceeds_limit, rule::initiator_depth);
}
