// SPDX-License-Identifier: MIT
// The table of options: words become enumerators and nothing else does, numbers keep their limits, programs' settings
// go before the environment's, and renamed variables say their new name.
#include "base/options.hpp"
#include "base/log.hpp"
#include "config.h"
#include "refusal.hpp"

namespace {

using xio::options;
using xio::setting;
using xio::test::refusal;
namespace option = xio::option;

bool says(const std::string& sentence, const std::string& words) { return sentence.find(words) != std::string::npos; }

struct set_for_a_while {
  set_for_a_while(const char* n, const char* value) : name(n) { setenv(name, value, 1); }
  ~set_for_a_while() {
    unsetenv(name);
    xio::log::set_level(xio::log::level::warn);
  }
  const char* name;
};

options with(const char* variable, const char* value) { return options::from_environment({{variable, value}}); }

std::string refused(const std::vector<setting>& given) {
  return refusal(XIO_ERR_CONFIG, [&] { options::from_environment(given); });
}

// Each word that docs/environment.md lists has its meaning to the library.
TEST(option_words, each_means_its_enumerator) {
  const auto family = [](const char* word) { return with("XIO_NIC_FAMILY", word).nic_family; };
  EXPECT_PAIRS((family("auto"), option::nic_family::automatic), (family("mlx5"), option::nic_family::mlx5),
               (family("mlx5_cq"), option::nic_family::mlx5_cq), (family("mlx5_nodbr"), option::nic_family::mlx5_nodbr),
               (family("bnxt"), option::nic_family::bnxt), (family("ionic"), option::nic_family::ionic),
               (family("ionic_v1"), option::nic_family::ionic_v1), (family("ernic"), option::nic_family::ernic),
               (family("proxy"), option::nic_family::proxy));
  const auto hdp = [](const char* word) { return with("XIO_HDP", word).hdp; };
  EXPECT_PAIRS((hdp("auto"), option::hdp::automatic), (hdp("none"), option::hdp::none),
               (hdp("device"), option::hdp::device), (hdp("host"), option::hdp::host), (hdp("sdma"), option::hdp::sdma),
               (hdp("rdma-read"), option::hdp::rdma_read), (hdp("readback"), option::hdp::readback));
  const auto heap = [](const char* word) { return with("XIO_HEAP_KIND", word).heap_kind; };
  EXPECT_PAIRS((heap("device"), option::heap_kind::device), (heap("uncached"), option::heap_kind::uncached),
               (heap("fine"), option::heap_kind::fine), (heap("host"), option::heap_kind::host),
               (heap("managed"), option::heap_kind::managed));
  const auto doorbell = [](const char* word) { return with("XIO_NVME_DOORBELL", word).nvme_doorbell; };
  EXPECT_PAIRS((doorbell("auto"), option::nvme_doorbell::automatic), (doorbell("bar"), option::nvme_doorbell::bar),
               (doorbell("shadow"), option::nvme_doorbell::shadow), (doorbell("host"), option::nvme_doorbell::host),
               (doorbell("bridge"), option::nvme_doorbell::bridge));
  const auto bootstrap = [](const char* word) { return with("XIO_BOOTSTRAP", word).bootstrap; };
  EXPECT_PAIRS((bootstrap("auto"), option::bootstrap::automatic), (bootstrap("mpi"), option::bootstrap::mpi),
               (bootstrap("tcp"), option::bootstrap::tcp), (bootstrap("ucx"), option::bootstrap::ucx),
               (bootstrap("pmi2"), option::bootstrap::pmi2), (bootstrap("local"), option::bootstrap::local));
  const auto route = [](const char* word) { return with("XIO_ROUTE", word).route; };
  EXPECT_PAIRS((route("auto"), XIO_ROUTE_AUTO), (route("direct"), XIO_ROUTE_DIRECT), (route("rdma"), XIO_ROUTE_RDMA),
               (route("sdma"), XIO_ROUTE_SDMA));
  const auto executor = [](const char* word) { return with("XIO_NIC_EXECUTOR", word).nic_executor; };
  EXPECT_PAIRS((executor("auto"), option::nic_executor::automatic), (executor("shm"), option::nic_executor::shm),
               (executor("tcp"), option::nic_executor::tcp), (executor("verbs"), option::nic_executor::verbs),
               (executor("libfabric"), option::nic_executor::libfabric));
  EXPECT_EQ(with("XIO_BACKEND", "auto").backend, option::backend::automatic);
  EXPECT_EQ(with("XIO_BACKEND", "hw").backend, option::backend::hw);
  EXPECT_EQ(with("XIO_BACKEND", "model").backend, option::backend::model);
  EXPECT_EQ(with("XIO_VFIO_IOMMU", "type1").vfio_iommu, option::vfio_iommu::type1);
  EXPECT_EQ(with("XIO_VFIO_IOMMU", "iommufd").vfio_iommu, option::vfio_iommu::iommufd);
  EXPECT_EQ(with("XIO_GPU_SHARING", "yes").gpu_sharing, option::gpu_sharing::yes);
  EXPECT_EQ(with("XIO_GPU_SHARING", "no").gpu_sharing, option::gpu_sharing::no);
  EXPECT_EQ(with("XIO_GPU_DEVICE", "current").gpu_device, option::gpu_device::current);
  EXPECT_EQ(with("XIO_PEER_ACCESS", "off").peer_access, option::peer_access::off);
  EXPECT_EQ(with("XIO_RDMA_ATOMIC32", "emulate").rdma_atomic32, option::rdma_atomic32::emulate);
}

// rdma-core libibverbs/verbs.h: IBV_MTU_256 = 1 to IBV_MTU_4096 = 5.
TEST(option_words, an_mtu_is_the_number_of_verbs) {
  int code = 0;
  for (const char* word : {"auto", "256", "512", "1024", "2048", "4096"})
    EXPECT_EQ(static_cast<int>(with("XIO_RDMA_MTU", word).rdma_mtu), code++) << word;
}

TEST(option_words, log_levels_are_those_of_the_log) {
  const set_for_a_while restore("XIO_LOG_LEVEL", "warn");
  EXPECT_EQ(with("XIO_LOG_LEVEL", "trace").log_level, xio::log::level::trace);
  EXPECT_TRUE(xio::log::enabled(xio::log::level::trace));
  EXPECT_EQ(with("XIO_LOG_LEVEL", "error").log_level, xio::log::level::error);
  EXPECT_FALSE(xio::log::enabled(xio::log::level::warn));
}

TEST(option_words, others_are_refused_with_all_words_and_the_nearest) {
  const std::string likely = refused({{"XIO_BACKEND", "modle"}});
  EXPECT_PRED2(says, likely, "XIO_BACKEND='modle' is not known; use one of auto|hw|model; did you mean model?");
  const std::string unlikely = refused({{"XIO_BACKEND", "abacus"}});
  EXPECT_PRED2(says, unlikely, "XIO_BACKEND='abacus' is not known; use one of auto|hw|model");
  EXPECT_FALSE(says(unlikely, "did you mean")) << unlikely;
  EXPECT_PRED2(says, refused({{"XIO_HDP", "rdma_read"}}), "did you mean rdma-read?");
  for (const char* wrong : {"Auto", "auto ", " auto", "auto|hw", "|", "0", "au\nto"})
    EXPECT_PRED2(says, refused({{"XIO_BACKEND", wrong}}), "use one of auto|hw|model") << wrong;
}

TEST(option_numbers, may_be_auto) {
  EXPECT_FALSE(options::defaults().memory_mode.has_value());
  EXPECT_FALSE(with("XIO_RDMA_GID_INDEX", "auto").rdma_gid_index.has_value());
  EXPECT_PAIRS((with("XIO_RDMA_GID_INDEX", "255").rdma_gid_index, 255u), (with("XIO_MEMORY_MODE", "0").memory_mode, 0u),
               (with("XIO_MEMORY_MODE", "15").memory_mode, 15u));
  for (const char* wrong : {"-1", "x", "1x", "Auto", " 1", "0x1"})
    EXPECT_PRED2(says, refused({{"XIO_MEMORY_MODE", wrong}}), "is no number; use auto or one in 0..15") << wrong;
  for (const char* wrong : {"16", "99999999999999999999"})
    EXPECT_PRED2(says, refused({{"XIO_MEMORY_MODE", wrong}}), std::string("XIO_MEMORY_MODE='") + wrong) << wrong;
  EXPECT_PRED2(says, refused({{"XIO_RDMA_GID_INDEX", "256"}}), "XIO_RDMA_GID_INDEX='256' is outside 0..255");
}

TEST(option_settings, of_a_program_go_before_the_environment) {
  const set_for_a_while depth("XIO_RING_DEPTH", "64"), kind("XIO_HEAP_KIND", "host");
  EXPECT_EQ(options::from_environment().ring_depth, 64u);
  const options o =
      options::from_environment({{"XIO_RING_DEPTH", "16"}, {"XIO_RING_DEPTH", "32"}, {"XIO_HEAP_KIND", ""}});
  EXPECT_EQ(o.ring_depth, 32u) << "the last counts";
  EXPECT_EQ(o.heap_kind, option::heap_kind::device) << "empty is the default, even where the environment has a value";
  EXPECT_STREQ(std::getenv("XIO_RING_DEPTH"), "64");
  EXPECT_EQ(options::right_values({{"XIO_RING_DEPTH", "16"}}).ring_depth, 16u);
  EXPECT_EQ(options::right_values({{"XIO_RING_DEPTH", "deep"}}).ring_depth, options::defaults().ring_depth);
}

TEST(option_settings, that_a_world_cannot_have_are_refused) {
  EXPECT_PRED2(says, refused({{"XIO_RING_DEPHT", "16"}}),
               "'XIO_RING_DEPHT' is not a variable of XIO; did you mean XIO_RING_DEPTH?");
  EXPECT_PRED2(says, refused({{"", "16"}}), "is not a variable of XIO");
  EXPECT_PRED2(says, refused({{"XIO_HOST_WAVE", "32"}}), "XIO_HOST_WAVE is of the process");
  EXPECT_PRED2(says, refused({{"XIO_RING_DEPTH", "3"}}), "XIO_RING_DEPTH='3' is outside 4..32768");
}

TEST(option_renames, say_the_new_name) {
  const xio::renamed_variable all[] = {{"XIO_OLD", "XIO_NEW", "0.2"}, {"XIO_ELDER", "XIO_YOUNGER", "0.3"}};
  EXPECT_EQ(xio::say_new_name("XIO_ELDER", all),
            "XIO_ELDER is called XIO_YOUNGER since XIO 0.3; set XIO_YOUNGER and unset XIO_ELDER");
  EXPECT_PAIRS((xio::say_new_name("XIO_NEW", all), ""), (xio::say_new_name("XIO_OL", all), ""),
               (xio::say_new_name("XIO_OLD", {}), ""));
}

TEST(option_rows, stand_in_groups_with_test_knobs_last) {
  std::size_t count = 0;
  const xio::option_row* rows = xio::option_rows(&count);
  ASSERT_GT(count, 0u);
  EXPECT_PAIRS((rows[0].group, xio::option_group::user), (rows[count - 1].group, xio::option_group::test));
  for (std::size_t i = 0; i < count; ++i) {
    const bool knob =
        std::strstr(rows[i].variable, "XIO_MODEL_") != nullptr || std::strstr(rows[i].variable, "XIO_HOST_") != nullptr;
    EXPECT_TRUE(!knob || rows[i].group == xio::option_group::test) << rows[i].variable;
  }
}

}  // namespace
