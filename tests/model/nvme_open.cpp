// SPDX-License-Identifier: MIT
// Opening: one sentence for each thing that can be wrong, and the file as it was.
#include "../unit/local_world.hpp"
#include "../unit/outcome.hpp"
#include "ctx/stripes.hpp"
#include "full_disk.hpp"
#include "loop_device.hpp"
#include "nvme_rig.hpp"
#include "transport/nvme/file_name.hpp"

using namespace xio;
using namespace xio::test;

namespace {

outcome open_as(const std::string& name, const xio_storage_attr_t& attr,
                const std::function<void(options&)>& change = {}) {
  options o = options::defaults();
  if (change) change(o);
  progress::machine machine(1);
  return outcome_of([&] { nvme::open_controller(name, attr, o, machine, gpu::payload())->commit(); });
}

xio_storage_attr_t with(std::uint32_t flags, std::uint64_t bytes = 0) {
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = flags;
  attr.bytes = bytes;
  return attr;
}

void expect(const outcome& a, xio_status_t status, const std::string& part) { expect_outcome(a, status, {part}); }

// Opened by the public call, which puts stripes over several files.
outcome open_in_a_world(const std::string& name, const xio_storage_attr_t& attr) {
  xio_world_t* world = start_world(2 << 20);
  xio_storage_t storage;
  const outcome a{xio_storage_open(world, name.c_str(), &attr, &storage), xio_last_error()};
  EXPECT_EQ(xio_finalize(world), XIO_OK);
  return a;
}

// `open` is refused with that sentence however the file would have been shaped. One that was there is as it was, one
// that was not is not.
void refused_without_a_trace(const std::function<outcome(const std::string& path, const xio_storage_attr_t&)>& open,
                             xio_status_t status, const std::string& part,
                             const std::vector<std::uint64_t>& sizes = {0, 3000, 1 << 20}) {
  const std::vector<unsigned char> before = stamped_data(5000);
  for (const std::uint32_t flags : {0u, 0u + XIO_STORAGE_CREATE, 0u + XIO_STORAGE_TRUNCATE}) {
    for (const std::uint64_t bytes : sizes) {
      scratch_file f;
      f.write(before);
      expect(open(f.path, with(flags, bytes)), status, part);
      EXPECT_TRUE(f.read() == before) << flags << " " << bytes << ": now " << f.size() << " bytes";
      unlink(f.path.c_str());
      expect(open(f.path, with(flags | XIO_STORAGE_CREATE, bytes)), status, part);
      EXPECT_NE(access(f.path.c_str(), F_OK), 0) << flags << " " << bytes;
    }
  }
}

}  // namespace

TEST(nvme_open, names) {
  expect(open_as("nvme:ffff:01:00.0/1", with(0)), XIO_ERR_ARG, "no PCI function ffff:01:00.0");
  expect(open_as("kmod:/dev/sda", with(0)), XIO_ERR_ARG, "wants a whole namespace as /dev/nvme0n1");
  expect(open_as("kmod:/dev/nvme99n99", with(0)), XIO_ERR_IO, "Linux knows no drive /dev/nvme99n99");
  expect(open_as("ftp:there", with(0)), XIO_ERR_ARG, "must begin with file:, block:, nvme: or kmod:");
  expect(open_as("plain", with(0)), XIO_ERR_ARG, "must begin with file:, block:, nvme: or kmod:");
  expect(open_as("", with(0)), XIO_ERR_ARG, "must begin with file:, block:, nvme: or kmod:");
  expect(open_as("file:", with(0)), XIO_ERR_ARG, "no path");
  expect(open_as("file:/x", with(0), [](options& o) { o.backend = option::backend::hw; }), XIO_ERR_UNSUPPORTED,
         "XIO_BACKEND");
}

TEST(nvme_open, paths) {
  expect(open_as("file:/no/such/file", with(0)), XIO_ERR_IO, "No such file");
  expect(open_as("file:/no/such/file", with(XIO_STORAGE_CREATE)), XIO_ERR_IO, "No such file");
  expect(open_as("file:/tmp", with(0)), XIO_ERR_IO, "neither a file nor a block device");
  expect(open_as("file:/dev/null", with(0)), XIO_ERR_IO, "neither a file nor a block device");
  expect(open_as("file:/proc/self/mem", with(0)), XIO_ERR_ARG, "it is the kernel's");
  expect(open_as("file:/sys/kernel/mm/transparent_hugepage/enabled", with(XIO_STORAGE_READ_ONLY)), XIO_ERR_ARG,
         "it is the kernel's");
  scratch_file f(1000);
  expect(open_as("file:" + f.path, with(XIO_STORAGE_READ_ONLY, 1001)), XIO_ERR_IO, "too short: it has 1000 bytes");
  expect(open_as("file:" + f.path, with(XIO_STORAGE_READ_ONLY | XIO_STORAGE_TRUNCATE)), XIO_ERR_ARG, "READ_ONLY");
  expect(open_as("file:" + f.path, with(0, std::uint64_t{1} << 63)), XIO_ERR_IO, "cannot grow");
  EXPECT_EQ(f.size(), 1000u);
  if (geteuid() != 0) {
    chmod(f.path.c_str(), 0400);
    expect(open_as("file:" + f.path, with(0)), XIO_ERR_IO, "permissions");
  }
}

// A whole device that nobody holds, and whose data nobody wants to keep.
TEST(nvme_open, block_devices) {
  scratch_file f(4 << 20);
  expect(open_as("block:" + f.path, with(0)), XIO_ERR_ARG, "it is no block device; write file:");
  expect(open_as("block:/no/such/device", with(0)), XIO_ERR_IO, "No such file");
  expect(open_as("block:", with(0)), XIO_ERR_ARG, "there is no path after block:");
  const loop_device device(f.path);
  if (device.path().empty()) GTEST_SKIP() << "no loop device can be had here; nvme_holders has the rest";
  for (const auto& name : {"block:" + device.path(), "file:" + device.path()}) {
    const auto write_at = [&](std::uint64_t at, char value) {
      std::fstream(device.path(), std::ios::in | std::ios::out | std::ios::binary).seekp(at).put(value);
    };
    expect(open_as(name, with(0)), XIO_OK, "");
    expect(open_as(name, with(XIO_STORAGE_TRUNCATE)), XIO_ERR_ARG, "is not emptied");
    for (const std::uint64_t at : {std::uint64_t{1080}, std::uint64_t{(4 << 20) - 1}}) {
      write_at(at, 'x');
      expect(open_as(name, with(0)), XIO_ERR_STATE, "it holds data (at byte " + std::to_string(at) + ")");
      expect(open_as(name, with(XIO_STORAGE_CREATE)), XIO_OK, "");
      expect(open_as(name, with(XIO_STORAGE_READ_ONLY)), XIO_OK, "");
      write_at(at, 0);
    }
    expect(open_as(name, with(0, (4 << 20) + 1)), XIO_ERR_IO, "too short: it has 4194304 bytes");
    const unique_fd claim(open(device.path().c_str(), O_RDONLY | O_EXCL | O_CLOEXEC));
    expect(open_as(name, with(XIO_STORAGE_READ_ONLY)), XIO_ERR_STATE, "is in use");
  }
}

TEST(nvme_open, shapes) {
  scratch_file f(4096);
  const auto shaped = [&](const std::function<void(xio_storage_attr_t&)>& change) {
    xio_storage_attr_t attr = with(XIO_STORAGE_TRUNCATE);
    change(attr);
    return open_as("file:" + f.path, attr);
  };
  expect(shaped([](auto& a) { a.block_bytes = 256; }), XIO_ERR_ARG, "512 to 65536");
  expect(shaped([](auto& a) { a.block_bytes = 1000; }), XIO_ERR_ARG, "power of two");
  expect(shaped([](auto& a) { a.block_bytes = 131072; }), XIO_ERR_ARG, "512 to 65536");
  expect(shaped([](auto& a) { a.depth = 2; }), XIO_ERR_ARG, "4 to 4096");
  expect(shaped([](auto& a) { a.depth = 100; }), XIO_ERR_ARG, "power of two");
  expect(shaped([](auto& a) { a.depth = 8192; }), XIO_ERR_ARG, "4 to 4096");
  expect(shaped([](auto& a) { a.queues = 65; }), XIO_ERR_ARG, "at most 64");
  const auto mdts = [&](std::uint64_t bytes, std::uint32_t block) {
    xio_storage_attr_t attr = with(XIO_STORAGE_TRUNCATE);
    attr.block_bytes = block;
    return open_as("file:" + f.path, attr, [&](options& o) { o.nvme_mdts = bytes; });
  };
  expect(mdts(12288, 0), XIO_ERR_CONFIG, "power of two");
  expect(mdts(4096, 0), XIO_ERR_CONFIG, "8k to 8M");
  expect(mdts(16384, 65536), XIO_ERR_CONFIG, "less than a block");
  // Refused before anything was done to the file.
  EXPECT_EQ(f.size(), 4096u);
}

// Queues go where the mode says; doorbells cannot.
TEST(nvme_open, memory_modes) {
  scratch_file f(1 << 20);
  const auto mode = [&](option::AUTO_UINT m) {
    return open_as("file:" + f.path, with(0), [&](options& o) { o.memory_mode = m; });
  };
  expect(mode(4), XIO_ERR_UNSUPPORTED, "its doorbells are registers of the controller");
  expect(mode(15), XIO_ERR_UNSUPPORTED, gpu::host_reads_device_memory() ? "leave out 4" : "leave out 1");
  for (const option::AUTO_UINT m : {option::AUTO_UINT{}, {0}, {8}}) expect(mode(m), XIO_OK, "");
  if (gpu::host_reads_device_memory()) {
    for (const std::uint64_t m : {1, 2, 3, 11}) expect(mode(m), XIO_OK, "");
  } else {
    expect(mode(1), XIO_ERR_UNSUPPORTED, "a software device reads and writes it as host memory");
  }
}

// Memory behind the end of a file is a signal, so a file that is too short for a ring is none.
TEST(nvme_open, bridges_have_a_ring) {
  scratch_file f(4096);
  for (const std::uint64_t bytes : {0, 100, 4095, 4096, 8192}) {
    scratch_file ring(bytes);
    const outcome a = open_as("file:" + f.path, with(0), [&](options& o) {
      o.nvme_doorbell = option::nvme_doorbell::bridge;
      o.nvme_bridge = ring.path;
    });
    expect(a, XIO_ERR_UNSUPPORTED, "point XIO_NVME_BRIDGE at a bridge");
    EXPECT_EQ(ring.size(), bytes);
  }
}

TEST(nvme_open, sizes) {
  scratch_file f(1000);
  EXPECT_EQ(open_as("file:" + f.path, with(0, 3000)).status, XIO_OK);
  EXPECT_EQ(f.size(), 3000u);
  // A file that was longer stays so: only TRUNCATE shortens.
  EXPECT_PAIRS((open_as("file:" + f.path, with(XIO_STORAGE_CREATE, 100)).status, XIO_OK), (f.size(), 3000u),
               (open_as("file:" + f.path, with(XIO_STORAGE_TRUNCATE, 777)).status, XIO_OK), (f.size(), 777u),
               (open_as("file:" + f.path, with(XIO_STORAGE_TRUNCATE)).status, XIO_OK), (f.size(), 0u));
  unlink(f.path.c_str());
  EXPECT_EQ(open_as("file:" + f.path, with(XIO_STORAGE_CREATE, 5)).status, XIO_OK);
  EXPECT_EQ(f.size(), 5u);
}

TEST(nvme_open, refused_for_the_other_stripes) {
  scratch_file other(1000);
  refused_without_a_trace(
      [&](auto& path, auto& attr) {
        return open_in_a_world("file:" + path + "?block=512,file:" + other.path + "?block=4096", attr);
      },
      XIO_ERR_ARG, "stripes need equal blocks");
  EXPECT_EQ(other.size(), 1000u);
  refused_without_a_trace(
      [&](auto& path, auto& attr) { return open_in_a_world("file:" + path + ",file:/missing/b", attr); }, XIO_ERR_IO,
      "/missing/b");
}

// No check foresees every refusal to make a file longer: here, of the second one, by a seal.
TEST(nvme_open, refused_when_another_stripe_does_not_grow) {
  const int sealed = memfd_create("xio_nvme_open", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(sealed, 512), 0);
  ASSERT_EQ(fcntl(sealed, F_ADD_SEALS, F_SEAL_GROW), 0);
  const std::string other = "file:/proc/self/fd/" + std::to_string(sealed);
  refused_without_a_trace([&](auto& path, auto& attr) { return open_in_a_world("file:" + path + "," + other, attr); },
                          XIO_ERR_IO, "cannot make /proc/self/fd/", {1 << 20});
  close(sealed);
}

TEST(nvme_open, refused_for_its_queues) {
  refused_without_a_trace(
      [](auto& path, auto& attr) { return open_as("file:" + path, attr, [](options& o) { o.memory_mode = 4; }); },
      XIO_ERR_UNSUPPORTED, "its doorbells are registers of the controller");
  refused_without_a_trace(
      [](auto& path, auto& attr) {
        return open_as("file:" + path, attr, [](options& o) {
          o.nvme_doorbell = option::nvme_doorbell::bridge;
          o.nvme_bridge = "/no/such/bridge";
        });
      },
      XIO_ERR_IO, "cannot open the bridge /no/such/bridge");
}

// More than any file system gives a file; some give all below it.
TEST(nvme_open, refused_for_its_size) {
  refused_without_a_trace([](auto& path, auto& attr) { return open_as("file:" + path, attr); }, XIO_ERR_IO,
                          "cannot grow", {std::uint64_t{1} << 63});
}

namespace {

std::atomic<int> signals{0};

}  // namespace

// To grow a file beyond the limit would end the program by a signal.
TEST(nvme_open, refused_for_a_limit_of_file_size) {
  scratch_file f;
  f.write(stamped_data(3 << 20));
  auto limit = std::make_unique<full_disk::file_limit>(1 << 20, [](int) { signals.fetch_add(1); });
  refused_without_a_trace([](auto& path, auto& attr) { return open_as("file:" + path, attr); }, XIO_ERR_IO, "ulimit -f",
                          {(1 << 20) + 1, 2 << 20});
  // Shorter than it was, but longer than it may become.
  expect(open_as("file:" + f.path, with(XIO_STORAGE_TRUNCATE, 2 << 20)), XIO_ERR_IO, "ulimit -f");
  EXPECT_TRUE(f.read() == stamped_data(3 << 20));
  EXPECT_EQ(open_as("file:" + f.path, with(0, 2 << 20)).status, XIO_OK);
  EXPECT_EQ(open_as("file:" + f.path, with(XIO_STORAGE_TRUNCATE, 1 << 20)).status, XIO_OK);
  limit.reset();
  EXPECT_PAIRS((f.size(), 1u << 20), (signals.load(), 0));
}

// A file that an opening made goes with it, unless it is no longer that opening's alone.
TEST(nvme_open, nothing_of_others_is_removed) {
  scratch_file f;
  const auto uncommitted = [&](const std::function<void()>& meanwhile) {
    unlink(f.path.c_str());
    const model::nvme::file opened(f.path, with(XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE, 700));
    EXPECT_PAIRS((opened.bytes(), 700u), (f.size(), 0u));
    meanwhile();
  };
  uncommitted([] {});
  EXPECT_NE(access(f.path.c_str(), F_OK), 0);
  uncommitted([&] { f.write(stamped_data(900)); });
  EXPECT_TRUE(f.read() == stamped_data(900));
  uncommitted([&] {
    scratch_file another;
    EXPECT_EQ(rename(another.path.c_str(), f.path.c_str()), 0);
  });
  EXPECT_EQ(access(f.path.c_str(), F_OK), 0);
  uncommitted([&] { EXPECT_EQ(open_as("file:" + f.path, with(0, 700)).status, XIO_OK); });
  EXPECT_EQ(f.size(), 700u);
  // Grown already, and then refused for another stripe.
  const auto grown = [&](const std::function<void()>& meanwhile) {
    model::nvme::file opened(f.path, with(XIO_STORAGE_CREATE, 2000));
    opened.grow();
    EXPECT_EQ(f.size(), 2000u);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a file's clock may have ticks
    meanwhile();
  };
  grown([] {});
  EXPECT_EQ(f.size(), 700u);
  grown([&] { EXPECT_EQ(truncate(f.path.c_str(), 3000), 0); });
  EXPECT_EQ(f.size(), 3000u);
  EXPECT_EQ(truncate(f.path.c_str(), 700), 0);
  grown([&] { std::fstream(f.path, std::ios::in | std::ios::out).write("theirs", 6); });
  EXPECT_EQ(f.size(), 2000u);
  unlink(f.path.c_str());
  grown([] {});
  EXPECT_NE(access(f.path.c_str(), F_OK), 0);
  // Another one is between opening and committing.
  unlink(f.path.c_str());
  auto maker = std::make_unique<model::nvme::file>(f.path, with(XIO_STORAGE_CREATE, 700));
  model::nvme::file other(f.path, with(XIO_STORAGE_CREATE, 900));
  maker.reset();
  other.commit();
  EXPECT_EQ(f.size(), 900u);
  // Another one has committed, and has written nothing yet.
  auto grower = std::make_unique<model::nvme::file>(f.path, with(0, 2000));
  grower->grow();
  model::nvme::file idle(f.path, with(0));
  idle.commit();
  EXPECT_EQ(idle.bytes(), 2000u);
  grower.reset();
  EXPECT_EQ(f.size(), 2000u);
  EXPECT_TRUE(idle.whole());
}

TEST(nvme_open, queues_have_what_they_were_asked) {
  scratch_file f(4096);
  rig r(f.path, {.depth = 32, .queues = 5});
  EXPECT_EQ(r.drive().queue_count(), 5u);
  for (std::uint32_t q = 0; q < 5; ++q) {
    const auto& v = r.ring(q);
    EXPECT_PAIRS((v.depth, 32u), (v.nvme.cq_depth, 64u), (v.id, q + 1));
    EXPECT_GE(v.nvme.op_count, 4 * v.depth);
    dev::ring_state state{};
    gpu::copy(&state.credits, &v.state->credits, sizeof state.credits);
    EXPECT_EQ(state.credits, 31);
  }
}

// file:PATH?block=BYTES&size=BYTES goes before the attributes.
TEST(nvme_open, settings_in_the_name) {
  scratch_file f(1000);
  const std::string name = "file:" + f.path;
  EXPECT_EQ(open_as(name + "?size=8k", with(0, 3000)).status, XIO_OK);
  EXPECT_EQ(f.size(), 8192u);
  expect(open_as(name + "?size=9000", with(XIO_STORAGE_READ_ONLY)), XIO_ERR_IO, "too short: it has 8192 bytes");
  expect(open_as(name + "?block=1000", with(0)), XIO_ERR_ARG, "power of two");
  expect(open_as(name + "?block=4096&size=1x", with(0)), XIO_ERR_ARG, "size='1x' is not a size");
  expect(open_as(name + "?size=", with(0)), XIO_ERR_ARG, "is not a size");
  expect(open_as(name + "?size=4k&", with(0)), XIO_OK, "");
  expect(open_as(name + "?blok=512", with(XIO_STORAGE_CREATE)), XIO_ERR_ARG, "\"blok=512\" is neither");
  expect(open_as(name + "?size=1&direct", with(0)), XIO_ERR_ARG, "\"direct\" is neither");
  expect(open_as("file:?size=1M", with(XIO_STORAGE_CREATE)), XIO_ERR_ARG, "no path after file:");
  EXPECT_EQ(f.size(), 8192u);

  xio_storage_attr_t attr = with(0);
  attr.block_bytes = 512;
  const auto said = nvme::with_name(nvme::parse_file_name("a?block=65536&size=3M", ""), attr);
  EXPECT_PAIRS((said.block_bytes, 65536u), (said.bytes, 3u << 20),
               (nvme::with_name(nvme::parse_file_name("a", ""), attr).block_bytes, 512u));
}

void expect_parsed(const std::vector<std::tuple<const char*, const char*, std::uint64_t>>& names) {
  for (const auto& [name, path, bytes] : names) {
    const nvme::file_name n = nvme::parse_file_name(name, name);
    EXPECT_PAIRS((n.path, path) << name, (n.bytes, bytes) << name);
  }
}

// Paths may have question marks.
TEST(nvme_open, question_marks_of_paths) {
  expect_parsed({{"a", "a", 0},
                 {"why?", "why", 0},
                 {"why??", "why?", 0},
                 {"a?b", "a?b", 0},
                 {"a?=1", "a?=1", 0},
                 {"a?B=1", "a?B=1", 0},
                 {"a?size=1", "a", 1},
                 {"a?size=1?", "a?size=1", 0},
                 {"a?size=1?size=2", "a?size=1", 2},
                 {"/x?y/size=1", "/x?y/size=1", 0}});
}

// In quotes a path may have any letters.
TEST(nvme_open, quoted_paths) {
  expect_parsed({{"\"a\"", "a", 0},
                 {"\"a?size=1\"", "a?size=1", 0},
                 {"\"a?size=1\"?size=2", "a?size=1", 2},
                 {"\"a?\"?", "a?", 0},
                 {"\"a\"\"b\"", "a\"b", 0},
                 {"\"\"\"\"", "\"", 0},
                 {"\"a,file:b?size=3\"", "a,file:b?size=3", 0},
                 {"a\"b", "a\"b", 0}});
  for (const char* wrong : {"\"", "\"a", "\"a\"b", "\"a\"\"", "\"\"\""})
    expect(open_as(std::string("file:") + wrong, with(XIO_STORAGE_CREATE)), XIO_ERR_ARG, "begins with a quote");
  expect(open_as("file:\"\"", with(XIO_STORAGE_CREATE)), XIO_ERR_ARG, "no path");
  expect(open_as("file:\"a\"?blok=1", with(XIO_STORAGE_CREATE)), XIO_ERR_ARG, "neither block");

  const std::vector<std::string> one{"file:\"a,file:b\""};
  EXPECT_EQ(member_names(one[0]), one);
  const std::vector<std::string> three{"file:\"a,nvme:\"\",file:b\"?block=512", "file:\"c\"", "file:d,e"};
  EXPECT_EQ(member_names(three[0] + "," + three[1] + "," + three[2]), three);
}

TEST(nvme_open, stripes_together_have_a_size_of_64_bits) {
  dev::storage_view one{};
  one.block_bytes = 512;
  one.page_bytes = 4096;
  one.transfer_bytes = 1 << 20;
  one.queue_count = one.member_queues = one.members = 1;
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.stripe_bytes = 65536;
  const auto together = [&](std::uint64_t bytes, std::size_t members) {
    one.bytes = bytes;
    const std::vector<std::string> names(members, "file:x");
    return stripe(names, std::vector<dev::storage_view>(members, one), attr).bytes;
  };
  EXPECT_EQ(together((std::uint64_t{1} << 60) + 512, 8), std::uint64_t{1} << 63);
  EXPECT_EQ(together(65536 * 3 + 65024, 2), 65536u * 6);
  for (const std::size_t members : {std::size_t{4}, std::size_t{8}}) {
    SCOPED_TRACE(members);
    expect(outcome_of([&] { (void)together((std::uint64_t{1} << 62) + 65536, members); }), XIO_ERR_ARG,
           "cannot put stripes over file:x and others");
  }
}
