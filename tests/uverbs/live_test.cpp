// SPDX-License-Identifier: MIT
// What happens to the device while a world uses it: each status that firmware can give to each command, a port that
// goes down before more queues are made, the device's events; and rings in memory that a GPU lends. Run it by
// tests/uverbs/run.

#include "../gtest.hpp"
#include "proxy/keys.hpp"
#include "transport/rdma/direct/self_write.hpp"
#include "transport/rdma/verbs/ports.hpp"
#include "uverbs/orders.hpp"
#include "xio/xio.h"

namespace {

constexpr std::chrono::seconds k_patience{10};
constexpr std::uint32_t k_all_rights =
    xio::proxy::local_read | xio::proxy::local_write | xio::proxy::remote_read | xio::proxy::remote_write;

bool is(const char* nic) {
  const char* chosen = std::getenv("XIO_TEST_UVERBS_NIC");
  return chosen != nullptr && std::strcmp(chosen, nic) == 0;
}
std::string device() { return is("mlx5") ? "mlx5_0" : is("bnxt") ? "bnxt_re0" : "ionic_0"; }

struct live : ::testing::Test {
  void SetUp() override {
    xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
    attr.bootstrap = "local";
    attr.heap_bytes = 1 << 20;
    ASSERT_EQ(xio_init(&attr, &world), XIO_OK) << xio_last_error();
    // The device is opened with the first of them.
    ASSERT_EQ(create(), XIO_OK) << xio_last_error();
  }
  void TearDown() override {
    uverbs::order("well");
    EXPECT_EQ(xio_finalize(world), XIO_OK) << xio_last_error();
  }
  xio_status_t create() {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    xio_ctx_t ctx{};
    const xio_status_t status = xio_ctx_create(world, &attr, &ctx);
    if (status != XIO_OK) return status;
    EXPECT_EQ(xio_ctx_destroy(world, ctx), XIO_OK) << xio_last_error();
    return status;
  }
  xio_world_t* world = nullptr;
};

// One sentence: what, on which port, why, and a cure behind the last semicolon.
void expect_sentence(const std::string& said, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
  const auto cure = said.rfind("; ");
  ASSERT_NE(cure, std::string::npos) << said;
  EXPECT_GT(said.size() - cure, 10u) << said;
  EXPECT_EQ(said.find('\n'), std::string::npos) << said;
}

// Programmer's Reference Manual, command interface: every delivery status (Linux include/linux/mlx5/device.h,
// MLX5_CMD_STAT_*), and one that is none.
struct ending {
  const char *status, *name;
};
constexpr ending k_endings[] = {
    {"1", "an internal error"},
    {"2", "an unknown command"},
    {"3", "a bad parameter"},
    {"4", "a bad state of the NIC"},
    {"5", "a bad resource"},
    {"6", "a busy resource"},
    {"7", "not ready"},
    {"8", "a limit exceeded"},
    {"9", "a bad state of the resource"},
    {"a", "a bad index"},
    {"f", "no resources left"},
    {"10", "a bad state of the queue pair"},
    {"30", "a bad packet"},
    {"40", "a size below the completions that wait"},
    {"50", "a bad length"},
    {"51", "a bad length of the reply"},
    {"77", "an unknown status"},
};
struct command {
  const char *opcode, *text;
};
constexpr command k_commands[] = {
    {"400", "makes no completion queue of 256 entries"},
    {"500", "makes no queue pair of 256 entries"},
    {"502", "does not go from RESET to INIT"},
    {"503", "does not go from INIT to RTR"},
    {"504", "does not go from RTR to RTS"},
};

TEST_F(live, EveryStatusOfEveryCommandIsNamedWithItsCure) {
  if (!is("mlx5")) GTEST_SKIP() << "only a ConnectX takes firmware commands";
  for (const command& c : k_commands)
    for (const ending& e : k_endings) {
      const std::string refusal = std::string(c.opcode) + ":" + e.status;
      SCOPED_TRACE(refusal);
      uverbs::order(refusal);
      EXPECT_NE(create(), XIO_OK);
      expect_sentence(xio_last_error(), {"mlx5_0:1 ", c.text, std::string(e.name) + " (status 0x" + e.status + ", ",
                                         "syndrome 0x51afff)"});
      uverbs::order("well");
    }
  EXPECT_EQ(create(), XIO_OK) << xio_last_error();
}

TEST_F(live, APortThatWentDownIsNamedWhenMoreQueuesAreMade) {
  uverbs::order("port_down");
  EXPECT_NE(create(), XIO_OK);
  expect_sentence(xio_last_error(), {"RDMA device " + device() + " port 1 is not up (", "down"});
  uverbs::order("well");
  EXPECT_EQ(create(), XIO_OK) << xio_last_error();
}

// Moves memory into a file, in place, as the driver of a GPU lends what it has: the file begins with a page of others.
xio::gpu::exported_memory export_as_file(void* base, std::size_t bytes) {
  constexpr std::size_t k_page = 4096;
  const std::string was(static_cast<const char*>(base), bytes);
  const int fd = memfd_create("lent", MFD_CLOEXEC);
  if (ftruncate(fd, static_cast<off_t>(k_page + bytes)) != 0) return {};
  if (pwrite(fd, was.data(), bytes, k_page) != static_cast<ssize_t>(bytes)) return {};
  if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, k_page) == MAP_FAILED) return {};
  return {fd, k_page, ""};
}

// The device has the file alone: it maps that by itself.
TEST(dmabuf, RingsThatAreLentByTheGpuCarryAWrite) {
  namespace r = xio::rdma;
  if (is("ionic")) GTEST_SKIP() << "its driver takes no dma-buf for rings";
  const xio::options o = xio::options::from_environment();
  const auto ports = r::open_ports(o, 0, 0, "", true);
  const r::direct_provider& provider = *r::find_direct_provider(ports.at(0));
  alignas(64) static unsigned char words[r::k_probe_bytes];
  int exported = 0;
  r::direct_hooks hooks;
  hooks.rings = xio::gpu::place::device;
  hooks.export_memory = [&](void* base, std::size_t bytes) {
    if (base == words) return xio::gpu::exported_memory{};
    ++exported;
    return export_as_file(base, bytes);
  };
  const auto nic = provider.open(ports.at(0), r::path_of(o), hooks);
  const auto keys = nic->register_memory(words, sizeof words, k_all_rights);
  for (std::size_t i = 0; i < sizeof words; ++i) words[i] = static_cast<unsigned char>(i + 1);
  EXPECT_EQ(r::write_to_itself(*nic, {&provider.format, 0, r::path_of(o)}, {words, keys}, k_patience), "");
  EXPECT_GE(exported, 3) << "ring, completions and receives or records";
  EXPECT_EQ(std::memcmp(words, words + sizeof words / 2, sizeof words / 2), 0);
  nic->unregister_memory(keys);
}

// Whether the library has MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED, as rdma-core 45 and newer do (mlx5dv.h).
bool library_has_own_doorbells(ibv_context* context) {
  using take = void*(ibv_context*, std::uint32_t);
  using give = void(void*);
  auto* const alloc = reinterpret_cast<take*>(dlsym(RTLD_DEFAULT, "mlx5dv_devx_alloc_uar"));
  auto* const free = reinterpret_cast<give*>(dlsym(RTLD_DEFAULT, "mlx5dv_devx_free_uar"));
  void* doorbell = alloc(context, 1u << 31);
  if (doorbell != nullptr) free(doorbell);
  return doorbell != nullptr;
}

// An older library takes one uncached page when it opens a context, and all share its doorbell. A newer one takes pages
// as they are wanted, of which each has four. Write-combining pages, type 0, are for no kernel.
TEST(doorbell, EachNicHasItsOwnWhereTheLibraryHasThem) {
  namespace r = xio::rdma;
  if (!is("mlx5")) GTEST_SKIP() << "those of other NICs are their drivers'";
  constexpr std::uint32_t k_combining = 0, k_uncached = 1;  // MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF, _NC
  const xio::options o = xio::options::from_environment();
  const auto ports = r::open_ports(o, 0, 0, "", true);
  const unsigned combining = uverbs::pages_asked(k_combining), uncached = uverbs::pages_asked(k_uncached);
  const r::direct_provider& provider = *r::find_direct_provider(ports.at(0));
  const auto first = provider.open(ports.at(0), r::path_of(o), {}),
             second = provider.open(ports.at(0), r::path_of(o), {});
  EXPECT_EQ(uverbs::pages_asked(k_combining), combining);
  const unsigned asked = uverbs::pages_asked(k_uncached) - uncached;
  const bool own = library_has_own_doorbells(ports.at(0).context.get());
  const bool must = std::getenv("XIO_TEST_UVERBS_OWN_DOORBELLS") != nullptr;
  EXPECT_TRUE(own || !must) << "this rdma-core is older than 45";
  EXPECT_EQ(asked, own ? 1u : 0u);
  EXPECT_GT(uverbs::pages_asked(k_uncached), 0u);
  std::uint64_t* doorbells[2];
  for (int i = 0; i < 2; ++i) {
    xio::dev::ring_view v{};
    xio::dev::ring_state state{};
    (i == 0 ? first : second)->make_queue(256, 0, false)->fill(v, state);
    doorbells[i] = v.rdma.doorbell;
  }
  EXPECT_EQ(doorbells[0] != doorbells[1], own);
  for (const auto* nic : {&first, &second}) {
    alignas(64) static unsigned char words[r::k_probe_bytes];
    const auto keys = (*nic)->register_memory(words, sizeof words, k_all_rights);
    for (std::size_t i = 0; i < sizeof words; ++i) words[i] = static_cast<unsigned char>(i + 3);
    EXPECT_EQ(r::write_to_itself(**nic, {&provider.format, 0, r::path_of(o)}, {words, keys}, k_patience), "");
    EXPECT_EQ(std::memcmp(words, words + sizeof words / 2, sizeof words / 2), 0);
    (*nic)->unregister_memory(keys);
  }
}

// Stores to one register of several queue pairs may be merged, and then all but one of their doorbells are lost.
TEST(doorbell, EachQueuePairHasItsOwnWhereTheLibraryHasThem) {
  namespace r = xio::rdma;
  constexpr std::size_t k_queues = 9;  // more than a page of a ConnectX has
  const xio::options o = xio::options::from_environment();
  const auto ports = r::open_ports(o, 0, 0, "", true);
  std::map<void*, int> mapped;
  r::direct_hooks hooks;
  hooks.map_registers = [&](void* page, std::size_t, const xio::gpu::register_export&) {
    ++mapped[page];
    return page;
  };
  hooks.unmap_registers = [&](void* page) { return --mapped[page] == 0; };
  auto nic = r::find_direct_provider(ports.at(0))->open(ports.at(0), r::path_of(o), hooks);
  const bool own = !is("mlx5") || library_has_own_doorbells(ports.at(0).context.get());
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<r::direct_queue>> queues;
    std::set<std::uint64_t*> doorbells;
    for (std::size_t i = 0; i < k_queues; ++i) {
      queues.push_back(nic->make_queue(512, 1024, false));
      xio::dev::ring_view v{};
      xio::dev::ring_state state{};
      queues.back()->fill(v, state);
      doorbells.insert(v.rdma.doorbell);
    }
    EXPECT_EQ(doorbells.size(), own ? k_queues : 1u);
    for (const auto& [page, times] : mapped) EXPECT_LE(times, 1) << page << " is mapped more than once";
  }
  nic.reset();
  for (const auto& [page, times] : mapped) EXPECT_EQ(times, 0) << page << " is still mapped";
}

// Of the log, which a test run shows on its standard error.
std::string said_after(const std::string& what, const std::string& text) {
  testing::internal::CaptureStderr();
  uverbs::order(what);
  std::string all;
  const auto until = std::chrono::steady_clock::now() + k_patience;
  while (all.find(text) == std::string::npos && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    all += testing::internal::GetCapturedStderr();
    testing::internal::CaptureStderr();
  }
  testing::internal::GetCapturedStderr();
  return all;
}

// Numbers of enum ibv_event_type (rdma-core libibverbs/verbs.h).
TEST_F(live, EventsOfTheDeviceAreReadAndNamed) {
  const std::string port = device() + " port 1: ";
  EXPECT_NE(said_after("event:10", port + "the link is down").find("XIO_RDMA_TIMEOUT"), std::string::npos);
  EXPECT_NE(said_after("event:9", port + "the link is up").find("link is up"), std::string::npos);
  EXPECT_EQ(create(), XIO_OK) << xio_last_error();
  EXPECT_NE(said_after("event:8", device() + ": the device has failed").find("xio_ctx_recover"), std::string::npos);
}

}  // namespace
