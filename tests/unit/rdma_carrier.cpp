// SPDX-License-Identifier: MIT
// Which way RDMA goes in a world, by what every PE offers.
#include "base/log.hpp"
#include "outcome.hpp"
#include "says.hpp"
#include "thread_channel.hpp"
#include "transport/rdma/carrier.hpp"

namespace {

using xio::log::level;
using namespace xio::rdma;
using namespace xio::test;

constexpr std::uint32_t k_auto = 0, k_hw = 1, k_model = 2;

carrier_offer offer(std::uint32_t wanted, std::uint32_t backend, bool mapped, bool verbs) {
  return {wanted, backend, mapped ? 1u : 0u, verbs ? 1u : 0u,
          xio::rdma::make_reason(verbs ? "" : "its cable is pulled")};
}

carrier chosen(const std::vector<carrier_offer>& all) { return xio::rdma::choose_carrier(all, 0, "no device is here"); }

std::string refused(const std::vector<carrier_offer>& all, xio_status_t status, int me = 0) {
  return refusal(status, [&] { xio::rdma::choose_carrier(all, me, "no device is here"); });
}

TEST(rdma_carrier, auto_takes_hardware_only_where_every_pe_has_it) {
  EXPECT_EQ(chosen({offer(0, k_auto, true, true), offer(0, k_auto, true, true)}), carrier::verbs);
  EXPECT_EQ(chosen({offer(0, k_auto, true, true), offer(0, k_auto, true, false)}), carrier::shm);
  EXPECT_EQ(chosen({offer(0, k_auto, false, true), offer(0, k_auto, false, false)}), carrier::tcp);
}

TEST(rdma_carrier, a_model_that_was_asked_for_is_taken) {
  EXPECT_EQ(chosen({offer(0, k_model, true, true)}), carrier::shm);
  EXPECT_EQ(chosen({offer(0, k_model, false, true), offer(0, k_model, true, true)}), carrier::tcp);
}

TEST(rdma_carrier, an_executor_that_was_asked_for_is_taken_or_refused) {
  const auto tcp = static_cast<std::uint32_t>(carrier::tcp), shm = static_cast<std::uint32_t>(carrier::shm),
             verbs = static_cast<std::uint32_t>(carrier::verbs);
  EXPECT_EQ(chosen({offer(tcp, k_auto, true, true)}), carrier::tcp);
  EXPECT_EQ(chosen({offer(verbs, k_model, true, true)}), carrier::verbs);
  EXPECT_EQ(chosen({offer(shm, k_hw, true, true)}), carrier::shm);
  EXPECT_PRED2(says, refused({offer(shm, k_auto, true, true), offer(shm, k_auto, false, true)}, XIO_ERR_CONFIG),
               "PE 1 has peers on another machine");
  EXPECT_PRED2(says,
               refused({offer(verbs, k_auto, true, false), offer(verbs, k_auto, true, true)}, XIO_ERR_UNSUPPORTED),
               "no device is here");
  EXPECT_PRED2(says, refused({offer(verbs, k_auto, true, true), offer(verbs, k_auto, true, false)}, XIO_ERR_PEER),
               "PE 1 has none that works (or set XIO_BACKEND=model): its cable is pulled");
}

TEST(rdma_carrier, slingshot_is_taken_between_machines_where_no_device_is) {
  const auto here = [](std::uint32_t wanted, std::uint32_t backend, bool mapped, bool verbs) {
    carrier_offer o = offer(wanted, backend, mapped, verbs);
    o.slingshot = 1;
    return o;
  };
  EXPECT_EQ(chosen({here(0, k_auto, false, false), here(0, k_auto, false, false)}), carrier::libfabric);
  EXPECT_EQ(chosen({here(0, k_hw, true, false), here(0, k_hw, false, true)}), carrier::libfabric);
  EXPECT_EQ(chosen({here(0, k_auto, false, false), offer(0, k_auto, false, false)}), carrier::tcp);
  EXPECT_EQ(chosen({here(0, k_auto, true, false)}), carrier::shm);
  EXPECT_EQ(chosen({here(0, k_auto, false, true), here(0, k_auto, false, true)}), carrier::verbs);
  EXPECT_EQ(chosen({here(0, k_model, false, false)}), carrier::tcp);
  EXPECT_EQ(chosen({offer(static_cast<std::uint32_t>(carrier::libfabric), k_auto, true, true)}), carrier::libfabric);
}

TEST(rdma_carrier, hardware_that_is_missing_is_never_replaced) {
  EXPECT_PRED2(says, refused({offer(0, k_hw, true, false)}, XIO_ERR_UNSUPPORTED), "XIO_BACKEND=hw");
  EXPECT_PRED2(says, refused({offer(0, k_hw, true, true), offer(0, k_hw, true, false)}, XIO_ERR_PEER), "PE 1");
}

TEST(rdma_carrier, pes_must_ask_for_the_same) {
  EXPECT_PRED2(says, refused({offer(0, k_auto, true, true), offer(2, k_auto, true, true)}, XIO_ERR_CONFIG),
               "between PE 0 and PE 1");
  expect_words(refused({offer(0, k_auto, true, true), offer(0, k_model, true, true)}, XIO_ERR_CONFIG), {"XIO_BACKEND"});
}

TEST(rdma_carrier, the_family_follows_the_carrier) {
  auto o = xio::options::defaults();
  EXPECT_EQ(xio::rdma::family_name(o, carrier::verbs), "proxy");
  EXPECT_EQ(xio::rdma::family_name(o, carrier::libfabric), "proxy");
  EXPECT_EQ(xio::rdma::family_name(o, carrier::shm), "mlx5");
  o.nic_family = xio::option::nic_family::bnxt;
  EXPECT_EQ(xio::rdma::family_name(o, carrier::verbs), "bnxt");
}

// ---- what PEs of a world say to each other -------------------------------------------------------------------------

struct pe_end : outcome {
  bool taken = false;
};

// body(pe, channel) on each of n PEs, and the lines that were logged at `level`.
struct world_run {
  std::vector<pe_end> pes;
  std::string log;
  int lines_with(const std::string& words) const {
    int count = 0;
    for (std::size_t at = 0; (at = log.find(words, at)) != std::string::npos; ++at) ++count;
    return count;
  }
};
template <class Body>
world_run run(int n, level most, Body&& body) {
  world_run r;
  r.pes.resize(static_cast<std::size_t>(n));
  xio::log::set_level(most);
  testing::internal::CaptureStderr();
  xio::test::run_pes(n, [&](int pe, std::unique_ptr<xio::bootstrap::channel> c) {
    auto& o = r.pes[static_cast<std::size_t>(pe)];
    static_cast<outcome&>(o) = outcome_of([&] {
      o.taken = body(pe, *c);
      c->barrier();  // the channel is well: nobody is in another exchange
    });
  });
  r.log = testing::internal::GetCapturedStderr();
  xio::log::set_level(level::warn);
  return r;
}

bool took(const xio::options& o, bool mapped, xio::bootstrap::channel& c, const std::string& why, carrier expected) {
  return xio::rdma::agree_on_carrier(c, o, mapped, why) == expected;
}

TEST(rdma_carrier, several_machines_hear_once_that_they_get_the_software_nic) {
  const auto o = xio::options::defaults();
  const auto r = run(3, level::warn, [&](int pe, auto& c) {
    return took(o, false, c, pe == 1 ? "RDMA device mlx5_0 port 1 is not up" : "", carrier::tcp);
  });
  for (const auto& pe : r.pes) EXPECT_TRUE(pe.taken) << pe.sentence;
  EXPECT_EQ(r.lines_with("software NIC over TCP"), 1) << r.log;
  EXPECT_EQ(r.lines_with("PE 1: RDMA device mlx5_0 port 1 is not up"), 1) << r.log;
}

TEST(rdma_carrier, nobody_hears_of_what_he_asked_for) {
  auto model = xio::options::defaults(), tcp = model;
  model.backend = xio::option::backend::model;
  tcp.nic_executor = xio::option::nic_executor::tcp;
  for (const auto& o : {model, tcp})
    EXPECT_EQ(run(2, level::info, [&](int, auto& c) { return took(o, false, c, "no device", carrier::tcp); }).log, "");
  const auto one_machine = run(
      2, level::warn, [&](int, auto& c) { return took(xio::options::defaults(), true, c, "no device", carrier::shm); });
  EXPECT_EQ(one_machine.log, "");
}

// Where one PE's device cannot be used, the PEs whose device works learn the reason, too.
TEST(rdma_carrier, every_pe_can_say_why_its_device_is_not_used) {
  const auto r = run(3, level::info, [&](int pe, auto& c) {
    return took(xio::options::defaults(), true, c, pe == 2 ? "the driver\nis gone" : "", carrier::shm);
  });
  EXPECT_EQ(r.lines_with("no hardware: PE 2: the driver?is gone"), 3) << r.log;
}

struct one_pe {
  direct_state state = direct_state::ready;
  const char* family = "auto";
  xio_status_t status = XIO_ERR_IO;
  const char* why = "";
  const char* format = "mlx5";
};

world_run run_direct(const std::vector<one_pe>& pes, level most = level::info) {
  return run(static_cast<int>(pes.size()), most, [&](int pe, auto& c) {
    const one_pe& p = pes[static_cast<std::size_t>(pe)];
    auto o = xio::options::defaults();
    o.nic_family = xio::option::parse_word<xio::option::nic_family>(p.family, "a test");
    return xio::rdma::agree_on_direct(c, xio::rdma::make_direct_offer(o, p.state, p.status, p.why, p.format));
  });
}

void expect_all(const world_run& r, bool taken) {
  for (const auto& pe : r.pes) {
    EXPECT_EQ(pe.status, XIO_OK) << pe.sentence;
    EXPECT_EQ(pe.taken, taken);
  }
}

void expect_all_refused(const world_run& r, xio_status_t status, const std::string& words) {
  for (const auto& pe : r.pes) expect_outcome(pe, status, {words});
}

TEST(rdma_direct, is_wanted_by_the_options_that_leave_it_open_or_name_it) {
  auto o = xio::options::defaults();
  EXPECT_TRUE(xio::rdma::wants_direct(o));
  o.nic_family = xio::option::nic_family::mlx5;
  EXPECT_TRUE(xio::rdma::wants_direct(o));
  o.nic_executor = xio::option::nic_executor::verbs;  // the format, read by the software NIC
  EXPECT_FALSE(xio::rdma::wants_direct(o));
  o.nic_executor = xio::option::nic_executor::automatic;
  o.backend = xio::option::backend::model;
  EXPECT_FALSE(xio::rdma::wants_direct(o));
  o.backend = xio::option::backend::hw;
  o.nic_family = xio::option::nic_family::proxy;
  EXPECT_FALSE(xio::rdma::wants_direct(o));
}

TEST(rdma_direct, is_taken_where_every_pe_is_ready) {
  const auto r = run_direct({{}, {}, {direct_state::ready, "mlx5"}});
  expect_all(r, true);
  EXPECT_EQ(r.log, "");
}

TEST(rdma_direct, is_of_one_vendor) {
  const one_pe bnxt{direct_state::ready, "auto", XIO_OK, "", "bnxt"},
      named{direct_state::ready, "bnxt", XIO_OK, "", "bnxt"};
  const auto two = run_direct({{}, {}, bnxt});
  expect_all(two, false);
  EXPECT_EQ(two.lines_with("PE 0 has queues of mlx5 and PE 2 of bnxt"), 3) << two.log;
  expect_all(run_direct({bnxt, named}), true);
  expect_all_refused(run_direct({{}, named}), XIO_ERR_UNSUPPORTED,
                     "XIO_NIC_FAMILY=bnxt on PE 1: PE 0 has queues of mlx5 and PE 1 of bnxt");
  expect_all_refused(run_direct({named, {direct_state::absent, "auto", XIO_ERR_UNSUPPORTED, "Linux is too old"}}),
                     XIO_ERR_UNSUPPORTED, "XIO_NIC_FAMILY=bnxt on PE 0 asks for queues");
}

// One PE alone whose device does not work: no PE goes another way than the others, and the reason is said.
TEST(rdma_direct, is_taken_by_all_or_by_none) {
  const auto failed =
      run_direct({{}, {direct_state::failed, "auto", XIO_ERR_IO, "RDMA device mlx5_0 gives no page"}, {}});
  expect_all(failed, false);
  EXPECT_EQ(failed.lines_with("warning: RDMA device mlx5_0 gives no page; kernels of all PEs"), 1) << failed.log;
  EXPECT_EQ(failed.lines_with("PE 1: RDMA device mlx5_0 gives no page"), 2) << failed.log;
  const auto absent =
      run_direct({{}, {direct_state::absent, "auto", XIO_ERR_UNSUPPORTED, "RDMA device rxe0 is none of mlx5"}});
  expect_all(absent, false);
  EXPECT_EQ(absent.lines_with("PE 1: RDMA device rxe0 is none of mlx5"), 2) << absent.log;
  EXPECT_EQ(absent.lines_with("warning"), 0) << absent.log;
  const auto other = run_direct({{}, {direct_state::unwanted, "ernic"}});
  expect_all(other, false);
  EXPECT_EQ(other.lines_with("PE 1: its XIO_NIC_FAMILY, XIO_NIC_EXECUTOR or XIO_BACKEND asks for another way"), 2)
      << other.log;
  const auto nobody = run_direct({{direct_state::unwanted, "proxy"}, {direct_state::unwanted, "ernic"}});
  expect_all(nobody, false);
  EXPECT_EQ(nobody.log, "");
}

TEST(rdma_direct, that_is_named_is_taken_or_refused_on_every_pe) {
  expect_all_refused(
      run_direct({{direct_state::ready, "mlx5"}, {}, {direct_state::failed, "auto", XIO_ERR_IO, "no page"}}),
      XIO_ERR_IO,
      "XIO_NIC_FAMILY=mlx5 on PE 0 asks for queues that kernels drive by themselves, on every "
      "PE, and PE 2 has none: no page");
  expect_all_refused(run_direct({{direct_state::absent, "mlx5", XIO_ERR_UNSUPPORTED, "rxe0 is none of mlx5"},
                                 {direct_state::absent, "mlx5", XIO_ERR_UNSUPPORTED, "rxe1 is none of mlx5"}}),
                     XIO_ERR_UNSUPPORTED, "PE 0 has none: rxe0 is none of mlx5");
  expect_all_refused(run_direct({{direct_state::unwanted, "proxy"}, {direct_state::ready, "mlx5"}}), XIO_ERR_CONFIG,
                     "XIO_NIC_FAMILY=mlx5 on PE 1");
  expect_all_refused(
      run_direct({{direct_state::refused, "mlx5", XIO_ERR_UNSUPPORTED, "XIO_MEMORY_MODE=1 parts the ring"}}),
      XIO_ERR_UNSUPPORTED, "XIO_MEMORY_MODE=1 parts the ring");
}

TEST(rdma_direct, a_memory_mode_that_it_refuses_is_not_met_by_another_way) {
  const one_pe refused{direct_state::refused, "auto", XIO_ERR_UNSUPPORTED, "XIO_MEMORY_MODE=1 parts the ring"};
  expect_all_refused(run_direct({refused}), XIO_ERR_UNSUPPORTED, "PE 0: XIO_MEMORY_MODE=1 parts the ring");
  expect_all_refused(run_direct({{}, refused, {}}), XIO_ERR_UNSUPPORTED, "PE 1: XIO_MEMORY_MODE=1 parts the ring");
  // Where the device is none of mlx5 on some PE, the mode is for the way that all take to say something of.
  expect_all(run_direct({refused, {direct_state::absent, "auto", XIO_ERR_UNSUPPORTED, "rxe0 is none of mlx5"}}), false);
}

TEST(rdma_direct, a_peers_status_and_reason_are_checked) {
  std::vector<xio::rdma::direct_offer> all(
      2, xio::rdma::make_direct_offer(xio::options::defaults(), direct_state::refused, XIO_ERR_IO, "\x1b[2J"));
  all[0].status = 12345;
  all[0].why.fill('x');
  EXPECT_LT(refusal(XIO_ERR_PEER, [&] { xio::rdma::choose_direct(all); }).size(), 400u);
}

TEST(rdma_opening, that_fails_on_one_pe_fails_on_all_with_its_reason) {
  const auto open = [](int bad) {
    return run(3, level::warn, [bad](int pe, auto& c) {
      std::exception_ptr failure;
      try {
        if (pe == bad) xio::fail(XIO_ERR_NO_MEMORY, "RDMA device mlx5_1 gives no protection domain");
      } catch (...) {
        failure = std::current_exception();
      }
      xio::rdma::agree_on_opening(c, failure);
      return true;
    });
  };
  expect_all(open(-1), true);
  const auto one = open(1);
  expect_all_refused(one, XIO_ERR_NO_MEMORY, "RDMA device mlx5_1 gives no protection domain");
  for (const std::size_t pe : {0u, 2u}) EXPECT_PRED2(says, one.pes[pe].sentence, "PE 1: ");
}

}  // namespace
