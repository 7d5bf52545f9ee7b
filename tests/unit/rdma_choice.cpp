// SPDX-License-Identifier: MIT
// Which way RDMA goes in a world, by what every PE offers.
#include "transport/rdma/choice.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace {

bool says(const std::string& sentence, const std::string& words) { return sentence.find(words) != std::string::npos; }

using xio::rdma::carrier;
using xio::rdma::carrier_offer;

constexpr std::uint32_t k_auto = 0, k_hw = 1, k_model = 2;

carrier_offer offer(std::uint32_t wanted, std::uint32_t backend, bool mapped, bool verbs) {
  return {wanted, backend, mapped ? 1u : 0u, verbs ? 1u : 0u};
}

carrier chosen(const std::vector<carrier_offer>& all) { return xio::rdma::choose_carrier(all, 0, "no device is here"); }

std::string refused(const std::vector<carrier_offer>& all, xio_status_t status, int me = 0) {
  try {
    xio::rdma::choose_carrier(all, me, "no device is here");
  } catch (const xio::error& e) {
    EXPECT_EQ(e.status(), status);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(RdmaChoice, AutoTakesHardwareOnlyWhereEveryPeHasIt) {
  EXPECT_EQ(chosen({offer(0, k_auto, true, true), offer(0, k_auto, true, true)}), carrier::verbs);
  EXPECT_EQ(chosen({offer(0, k_auto, true, true), offer(0, k_auto, true, false)}), carrier::shm);
  EXPECT_EQ(chosen({offer(0, k_auto, false, true), offer(0, k_auto, false, false)}), carrier::tcp);
}

TEST(RdmaChoice, AModelThatWasAskedForIsTaken) {
  EXPECT_EQ(chosen({offer(0, k_model, true, true)}), carrier::shm);
  EXPECT_EQ(chosen({offer(0, k_model, false, true), offer(0, k_model, true, true)}), carrier::tcp);
}

TEST(RdmaChoice, AnExecutorThatWasAskedForIsTakenOrRefused) {
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
               "PE 1 has none");
}

TEST(RdmaChoice, HardwareThatIsMissingIsNeverReplaced) {
  EXPECT_PRED2(says, refused({offer(0, k_hw, true, false)}, XIO_ERR_UNSUPPORTED), "XIO_BACKEND=hw");
  EXPECT_PRED2(says, refused({offer(0, k_hw, true, true), offer(0, k_hw, true, false)}, XIO_ERR_PEER), "PE 1");
}

TEST(RdmaChoice, PesMustAskForTheSame) {
  EXPECT_PRED2(says, refused({offer(0, k_auto, true, true), offer(2, k_auto, true, true)}, XIO_ERR_CONFIG),
               "between PE 0 and PE 1");
  EXPECT_PRED2(says, refused({offer(0, k_auto, true, true), offer(0, k_model, true, true)}, XIO_ERR_CONFIG),
               "XIO_BACKEND");
}

TEST(RdmaChoice, TheFamilyFollowsTheCarrier) {
  auto o = xio::options::defaults();
  EXPECT_EQ(xio::rdma::family_name(o, carrier::verbs), "proxy");
  EXPECT_EQ(xio::rdma::family_name(o, carrier::shm), "mlx5");
  o.nic_family = "bnxt";
  EXPECT_EQ(xio::rdma::family_name(o, carrier::verbs), "bnxt");
}

}  // namespace
