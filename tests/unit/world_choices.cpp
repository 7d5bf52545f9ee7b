// SPDX-License-Identifier: MIT
// What a program asks for: attributes of older and newer callers, options, and the routes that follow.
#include "base/log.hpp"
#include "ctx/hello.hpp"
#include "ctx/route.hpp"
#include "memory/registration.hpp"
#include "refusal.hpp"
#include "says.hpp"
#include "topology/placement.hpp"
#include "xio/device/impl/request.hpp"

namespace {

using xio::options;
using xio::dev::route;
using namespace xio::test;

// --- Versions of attributes --------------------------------------------------------------------------

TEST(attributes, of_an_older_caller_end_early) {
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = XIO_ROUTE_RDMA;
  attr.pool = 7;
  attr.bulk_bytes = 99;
  attr.size = offsetof(xio_ctx_attr_t, bulk_bytes);  // that caller had no bulk_bytes
  const auto c = xio::choose_ctx(&attr, options::defaults());
  EXPECT_PAIRS((c.route, XIO_ROUTE_RDMA), (c.pool, 7u), (c.bulk_bytes, 0u));
}

TEST(attributes, of_a_newer_caller_are_taken_if_it_asks_for_nothing_new) {
  struct newer {
    xio_ctx_attr_t known;
    std::uint64_t more;
  } attr{XIO_CTX_ATTR_INIT, 0};
  attr.known.size = sizeof attr;
  attr.known.pool = 3;
  EXPECT_EQ(xio::choose_ctx(&attr.known, options::defaults()).pool, 3u);
  attr.more = 1;
  expect_words(refusal(XIO_ERR_CONFIG, [&] { xio::choose_ctx(&attr.known, options::defaults()); }), {"does not know"});
}

TEST(attributes, need_a_size) {
  xio_ctx_attr_t attr{};
  EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::choose_ctx(&attr, options::defaults()); }),
               "xio_ctx_attr_t.size is 0");
  attr.size = SIZE_MAX;
  refusal(XIO_ERR_CONFIG, [&] { xio::choose_ctx(&attr, options::defaults()); });
}

TEST(attributes, override_the_environment) {
  options o = options::defaults();
  o.route = XIO_ROUTE_SDMA;
  o.ring_depth = 64;
  o.ctx_pool = 5;
  o.sdma_threshold = 4096;
  const auto plain = xio::choose_ctx(nullptr, o);
  EXPECT_PAIRS((plain.route, XIO_ROUTE_SDMA), (plain.depth, 64u), (plain.pool, 5u), (plain.bulk_bytes, 4096u));
  const xio_ctx_attr_t attr{sizeof attr, XIO_ROUTE_DIRECT, 16, 2, 0, 123};
  const auto asked = xio::choose_ctx(&attr, o);
  EXPECT_PAIRS((asked.route, XIO_ROUTE_DIRECT), (asked.depth, 16u), (asked.pool, 2u), (asked.bulk_bytes, 123u));
}

TEST(attributes, of_a_ctx_are_checked) {
  options o = options::defaults();
  const auto refuses = [&](auto change, const char* words) {
    xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
    change(attr);
    EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::choose_ctx(&attr, o); }), words);
  };
  refuses([](auto& a) { a.ring_depth = 100; }, "ring_depth is 100");
  refuses([](auto& a) { a.pool = 1025; }, "pool is 1025");
  refuses([](auto& a) { a.route = static_cast<xio_route_t>(9); }, "route is 9");
  o.ticket_start = 100;
  EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::choose_ctx(nullptr, o); }), "XIO_TICKET_START=100");
  o.ticket_start = 0;
  o.ring_depth = 24;
  EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::choose_ctx(nullptr, o); }), "XIO_RING_DEPTH is 24");
}

TEST(attributes, of_storage_are_completed_and_checked) {
  const auto plain = xio::choose_storage(nullptr, options::defaults());
  EXPECT_PAIRS((plain.queues, 1u), (plain.depth, 256u));
  EXPECT_EQ(plain.block_bytes, 0u);  // a drive has its own, a file chooses
  const auto refuses = [](auto change, const char* word) {
    xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
    change(attr);
    const auto status = xio::guard([&] { xio::choose_storage(&attr, options::defaults()); });
    EXPECT_TRUE(status == XIO_ERR_CONFIG || status == XIO_ERR_ARG);
    EXPECT_PRED2(says, xio::last_error(), word);
  };
  refuses([](auto& a) { a.queues = 65; }, "queues is 65");
  refuses([](auto& a) { a.depth = 3; }, "depth is 3");
  refuses([](auto& a) { a.block_bytes = 513; }, "block_bytes is 513");
  refuses([](auto& a) { a.flags = 64; }, "flags is 0x40");
  refuses([](auto& a) { a.flags = XIO_STORAGE_READ_ONLY | XIO_STORAGE_CREATE; }, "READ_ONLY");
}

TEST(attributes, of_init_are_checked) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = 4096;
  EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::init_options(&attr); }), "heap_bytes is 4096");
  attr.heap_bytes = 3 << 20;
  attr.timeout_ms = UINT32_MAX;
  attr.bootstrap = "local";
  const auto o = xio::init_options(&attr);
  EXPECT_PAIRS((o.heap_size, 3u << 20), (o.timeout_ms, 0u), (o.bootstrap, xio::option::bootstrap::local));
  attr.tcp_size = 4;
  attr.tcp_rank = 4;
  EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::init_options(&attr); }), "tcp_rank 4 of tcp_size 4");
}

// A program that was compiled before the struct had its last fields passes fewer bytes.
TEST(attributes, of_init_have_grown_behind_what_old_programs_know) {
  struct before_options {
    std::size_t size = sizeof(before_options);
    const char* bootstrap = "local";
    std::size_t heap_bytes = 0;
    std::uint32_t timeout_ms = 7, reserved = 0;
    const char* tcp_root = nullptr;
    int tcp_rank = 0, tcp_size = 0;
    unsigned char behind[16];
  } old;
  old.size = offsetof(before_options, behind);
  std::memset(old.behind, 0xff, sizeof old.behind);
  EXPECT_EQ(old.size, offsetof(xio_init_attr_t, options));
  const auto o = xio::init_options(reinterpret_cast<const xio_init_attr_t*>(&old));
  EXPECT_PAIRS((o.timeout_ms, 7u), (o.bootstrap, xio::option::bootstrap::local));
}

TEST(attributes, of_init_may_set_any_option) {
  const xio_option_t given[] = {{"XIO_RING_DEPTH", "64"}, {"XIO_TIMEOUT_MS", "100"}, {"XIO_BACKEND", "hw"}};
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.options = given;
  attr.option_count = 2;
  attr.timeout_ms = 300;
  const auto o = xio::init_options(&attr);
  EXPECT_EQ(o.ring_depth, 64u);
  EXPECT_EQ(o.timeout_ms, 300u) << "a field goes before an option";
  EXPECT_EQ(o.backend, xio::option::backend::automatic) << "beyond option_count";
  EXPECT_EQ(xio::fallback_options(&attr).ring_depth, 64u);
  EXPECT_EQ(std::getenv("XIO_RING_DEPTH"), nullptr);
  const auto refuses = [&](const xio_option_t& one, const char* words) {
    attr.options = &one;
    attr.option_count = 1;
    EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::init_options(&attr); }), words);
    EXPECT_EQ(xio::fallback_options(&attr).timeout_ms, 300u);
  };
  refuses({"XIO_RING_DEPHT", "64"}, "did you mean XIO_RING_DEPTH?");
  refuses({"XIO_RING_DEPTH", "deep"}, "XIO_RING_DEPTH='deep'");
  refuses({"XIO_RING_DEPTH", nullptr}, "options[0] has no value");
  refuses({nullptr, "64"}, "options[0] has no name");
  attr.options = nullptr;
  EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::init_options(&attr); }), "options is null and option_count 1");
}

// --- The environment ---------------------------------------------------------------------------------

// Sets variables as long as it lives.
class environment {
 public:
  explicit environment(std::vector<std::pair<std::string, std::string>> variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~environment() {
    for (const auto& v : variables_) unsetenv(v.first.c_str());
    xio::log::set_level(xio::log::level::warn);
  }
  environment& operator=(environment&&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> variables_;
};

template <class Body>
std::string logged(Body&& body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

TEST(environment, says_what_is_logged_wherever_it_is_read) {
  {
    const environment quiet({{"XIO_LOG_LEVEL", "error"}, {"XIO_FLAVOUR", "1"}});
    EXPECT_EQ(logged([] { options::from_environment(); }), "");
  }
  const environment talkative({{"XIO_LOG_LEVEL", "debug"}, {"XIO_COLOUR", "1"}});
  EXPECT_PRED2(says, logged([] { options::from_environment(); }), "XIO_COLOUR is not a variable of XIO");
  EXPECT_TRUE(xio::log::enabled(xio::log::level::debug));
  EXPECT_FALSE(xio::log::enabled(xio::log::level::trace));
  // Those of the software AMD GPU, and of test programs, are theirs.
  const environment of_tests({{"XIO_AMDGPU_GPUS", "2"}, {"XIO_TEST_COLOUR", "1"}});
  EXPECT_EQ(logged([] { options::from_environment(); }).find("XIO_AMDGPU_GPUS"), std::string::npos);
}

TEST(environment, that_is_empty_counts_as_not_set) {
  const environment empty({{"XIO_HEAP_SIZE", ""}, {"XIO_ROUTE", ""}, {"XIO_TIMEOUT_MS", ""}, {"XIO_ODD_THREE", ""}});
  options o;
  EXPECT_PAIRS((logged([&] { o = options::from_environment(); }), ""), (o.heap_size, options::defaults().heap_size),
               (o.route, options::defaults().route), (o.timeout_ms, options::defaults().timeout_ms));
}

TEST(environment, is_read_by_threads_that_warn_once) {
  const environment odd({{"XIO_ODD_ONE", "1"}, {"XIO_ODD_TWO", "1"}});
  const std::string all = logged([] { xio::test::at_once(8, [](int) { options::from_environment(); }); });
  for (const std::string name : {"XIO_ODD_ONE", "XIO_ODD_TWO"}) {
    const auto first = all.find(name);
    EXPECT_NE(first, std::string::npos) << all;
    EXPECT_EQ(all.find(name, first + 1), std::string::npos) << all;
  }
}

TEST(environment, that_is_wrong_still_says_how_to_reach_the_others) {
  const environment wrong({{"XIO_HEAP_SIZE", "bogus"}, {"XIO_TIMEOUT_MS", "1000"}, {"XIO_TCP_SIZE", "2"}});
  EXPECT_PAIRS((xio::fallback_options(nullptr).timeout_ms, 1000u), (xio::fallback_options(nullptr).tcp_size, "2"));
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.timeout_ms = 2000;
  EXPECT_EQ(xio::fallback_options(&attr).timeout_ms, 2000u);
  attr.timeout_ms = UINT32_MAX;  // none
  EXPECT_EQ(xio::fallback_options(&attr).timeout_ms, 0u);
  attr.size = 3;
  EXPECT_EQ(xio::fallback_options(&attr).timeout_ms, 1000u);
  const environment worse({{"XIO_TIMEOUT_MS", "soon"}, {"XIO_BOOTSTRAP", "smoke"}});
  EXPECT_EQ(xio::fallback_options(nullptr).timeout_ms, options::defaults().timeout_ms);
  EXPECT_EQ(xio::fallback_options(nullptr).bootstrap, xio::option::bootstrap::automatic);
}

// --- Routes ------------------------------------------------------------------------------------------

xio::route_plan plan(xio_route_t wanted, std::vector<bool> mapped, std::uint64_t bulk_bytes = 0) {
  return xio::plan_routes({wanted, 256, 0, 1, 1, 0, bulk_bytes}, mapped, 0);
}

void expect_way(const xio::way& w, route small, route bulk, route atomic) {
  EXPECT_PAIRS((w.small, small), (w.bulk, bulk), (w.atomic, atomic));
}

TEST(routes, auto_takes_what_reaches) {
  const auto p = plan(XIO_ROUTE_AUTO, {true, true, false});
  expect_way(p.to[0], route::direct, route::direct, route::direct);
  expect_way(p.to[1], route::direct, route::direct, route::direct);
  expect_way(p.to[2], route::rdma, route::rdma, route::rdma);
  EXPECT_FALSE(p.uses(route::sdma));
}

TEST(routes, auto_takes_copy_engines_only_when_asked_and_not_for_itself) {
  const auto p = plan(XIO_ROUTE_AUTO, {true, true, false}, 65536);
  EXPECT_EQ(p.bulk_bytes, 65536u);
  expect_way(p.to[0], route::direct, route::direct, route::direct);
  expect_way(p.to[1], route::direct, route::sdma, route::direct);
  expect_way(p.to[2], route::rdma, route::rdma, route::rdma);
  EXPECT_EQ(p.to[1].used(), 1u << 1 | 1u << 3);
}

TEST(routes, forced_ones_hold_for_every_pe_and_for_itself) {
  for (const auto& w : plan(XIO_ROUTE_RDMA, {true, true, false}).to)
    expect_way(w, route::rdma, route::rdma, route::rdma);
  for (const auto& w : plan(XIO_ROUTE_SDMA, {true, true}).to) expect_way(w, route::sdma, route::sdma, route::direct);
  EXPECT_EQ(plan(XIO_ROUTE_SDMA, {true, true}).bulk_bytes, 0u);
  for (const auto& w : plan(XIO_ROUTE_DIRECT, {true, true}).to)
    expect_way(w, route::direct, route::direct, route::direct);
  // Else every put by loads and stores would go to the kernel's slow path, which knows copy engines.
  EXPECT_EQ(plan(XIO_ROUTE_DIRECT, {true, true}).bulk_bytes, UINT64_MAX);
  EXPECT_EQ(plan(XIO_ROUTE_DIRECT, {true, true}, 4096).bulk_bytes, UINT64_MAX);
  EXPECT_EQ(plan(XIO_ROUTE_AUTO, {true, true}).bulk_bytes, UINT64_MAX);
}

TEST(routes, forced_ones_that_cannot_be_are_refused_by_name) {
  for (const auto wanted : {XIO_ROUTE_DIRECT, XIO_ROUTE_SDMA})
    EXPECT_PRED2(says, refusal(XIO_ERR_NO_ROUTE, [&] { plan(wanted, {true, false}); }), "PE 1 is on another machine");
}

// Requests name a ring by 15 bits, and a storage's queue by what is above.
TEST(routes, rings_are_as_many_as_requests_can_name) {
  xio::ctx_settings settings{};
  settings.route = XIO_ROUTE_RDMA;
  settings.queues = 16;
  settings.copy_queues = 8;
  const std::vector<bool> pes(2048, false);
  EXPECT_EQ(xio::count_rings(settings, xio::plan_routes(settings, pes, 0)), 32768u);
  const std::vector<bool> too_many(2049, false);
  const std::string sentence =
      refusal(XIO_ERR_CONFIG, [&] { xio::count_rings(settings, xio::plan_routes(settings, too_many, 0)); });
  expect_words(sentence, {"32784 queues to 2049 PEs and can have 32768", "XIO_RDMA_QUEUES or XIO_SDMA_QUEUES"});
  // Copy engines and NICs together; loads and stores take none.
  settings.route = XIO_ROUTE_AUTO;
  settings.bulk_bytes = 1;
  EXPECT_EQ(xio::count_rings(settings, xio::plan_routes(settings, {true, true, true, false}, 0)), 2u * 8 + 16);
  std::vector<bool> many(4097, true);
  EXPECT_EQ(xio::count_rings(settings, xio::plan_routes(settings, many, 0)), 32768u);
  many.push_back(false);
  refusal(XIO_ERR_CONFIG, [&] { xio::count_rings(settings, xio::plan_routes(settings, many, 0)); });
  // The last one that there may be is no storage's.
  xio::dev::ring_view ring{};
  ring.index = 32767;
  EXPECT_FALSE(xio::dev::is_storage_request(xio::dev::make_request(ring, 0)));
  ring.index = xio::dev::k_storage_ring_base;
  EXPECT_TRUE(xio::dev::is_storage_request(xio::dev::make_storage_request(ring, 0, 1)));
}

// --- Which PE is on which machine --------------------------------------------------------------------

TEST(placement, counts_pes_of_the_own_machine) {
  const std::vector<std::string> machines{"a", "b", "a", "b", "b"};
  for (const auto& kernels : {std::vector<std::string>{"", "", "", "", ""}, {"k1", "k2", "k1", "k2", "k2"}}) {
    const auto p = xio::topology::place(machines, kernels, 3);
    EXPECT_PAIRS((p.local_rank, 1), (p.local_size, 3), (p.apart, 0),
                 (p.together, std::vector<bool>({false, true, false, true, true})));
  }
}

// A container for each PE: no memory is shared, but the GPUs and NICs are the same ones.
TEST(placement, counts_pes_of_other_containers_for_devices_only) {
  const std::vector<std::string> machines{"k1 pid1", "k2 pid9", "k1 pid2", "k1 pid3"}, kernels{"k1", "k2", "k1", "k1"};
  const auto p = xio::topology::place(machines, kernels, 3);
  EXPECT_PAIRS((p.local_rank, 2), (p.local_size, 3), (p.apart, 2),
               (p.together, std::vector<bool>({false, false, false, true})));
}

// --- Registered memory -------------------------------------------------------------------------------

void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }

TEST(registration, refuses_overlap_of_any_kind) {
  xio::memory::registration r;
  r.row(0) = {0x100000, 0x10000, {}, {}, 1, 0, 0, {}, {}};
  const auto row = r.add(at(0x10000), 0x1000);
  EXPECT_NE(row, 0u);
  for (const auto& [base, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0x10000, 0x1000}, {0x10000, 1}, {0xffff, 2}, {0x10fff, 1}, {0xf000, 0x3000}})
    EXPECT_PRED2(says, refusal(XIO_ERR_ARG, [&, b = base, n = bytes] { r.add(at(b), n); }), "overlap");
  EXPECT_PRED2(says, refusal(XIO_ERR_ARG, [&] { r.add(at(0x10ff00), 1); }), "symmetric heap");
  EXPECT_NE(r.add(at(0x11000), 1), row);  // touching is fine
  EXPECT_NE(r.add(at(0xffff), 1), row);
}

TEST(registration, refuses_what_is_no_buffer) {
  xio::memory::registration r;
  EXPECT_PRED2(says, refusal(XIO_ERR_ARG, [&] { r.add(nullptr, 1); }), "base is null");
  EXPECT_PRED2(says, refusal(XIO_ERR_ARG, [&] { r.add(at(64), 0); }), "bytes is 0");
  EXPECT_PRED2(says, refusal(XIO_ERR_ARG, [&] { r.add(at(64), UINT64_MAX - 8); }), "past the end");
}

TEST(registration, knows_its_rows_and_its_limit) {
  xio::memory::registration r;
  r.row(0) = {0x100000, 0x10000, {}, {}, 1, 0, 0, {}, {}};
  for (std::uint64_t i = 1; i < xio::dev::k_max_regions; ++i) {
    const auto row = r.add(at(i), 1);
    EXPECT_EQ(r.find(at(i)), row);
  }
  EXPECT_PRED2(says, refusal(XIO_ERR_NO_MEMORY, [&] { r.add(at(0x500), 1); }), "unregister one");
  r.remove(r.find(at(7)));
  refusal(XIO_ERR_NOT_REGISTERED, [&] { r.find(at(7)); });
  refusal(XIO_ERR_NOT_REGISTERED, [&] { r.find(at(0x100000)); });  // the heap is not the user's to remove
  r.add(at(0x500), 1);
}

// --- PEs and GPUs ------------------------------------------------------------------------------------

TEST(gpu_sharing, is_refused_only_when_it_was_forbidden) {
  // PE 1 is on another machine, whose GPU may have the same name.
  const std::vector<std::string> shared{"0000:3b:00.0", "", "0000:5e:00.0", "0000:3b:00.0"};
  options o = options::defaults();
  xio::check_sharing(o, shared, 2);
  o.gpu_sharing = xio::option::gpu_sharing::no;
  EXPECT_PRED2(says, refusal(XIO_ERR_CONFIG, [&] { xio::check_sharing(o, shared, 2); }),
               "PE 0 and PE 3 have the same GPU, 0000:3b:00.0, and XIO_GPU_SHARING=no; 2 can be seen here");
}

TEST(gpu_sharing, is_none_where_each_pe_has_its_own_or_none_is_named) {
  options o = options::defaults();
  o.gpu_sharing = xio::option::gpu_sharing::no;
  xio::check_sharing(o, {"0000:3b:00.0", "0000:5e:00.0"}, 2);
  // Each PE sees one GPU and calls it number 0.
  xio::check_sharing(o, {"0000:3b:00.0", "0000:5e:00.0"}, 1);
  // Other machines, and the host platform.
  xio::check_sharing(o, {"", "", "0000:3b:00.0"}, 1);
}

}  // namespace
