// SPDX-License-Identifier: MIT
// Files by hipFile and cuFile, played by fakes that check each argument (fake_file_library.cpp): what goes there, and
// that no op depends on a success of theirs.
#include <dlfcn.h>

#include "fake_file_library.hpp"
#include "nvme_hand.hpp"
#include "nvme_rig.hpp"

using namespace xio;
using namespace xio::test;

namespace {

using by = option::storage_files_by;

constexpr std::uint64_t k_bytes = 400001, k_page = 4096;

struct nvme_library : testing::TestWithParam<by> {
  nvme_library() {
    path = std::string(".libs/libfake_") + (hip() ? "hipfile.so" : "cufile.so");
    void* fake = dlopen(path.c_str(), RTLD_NOW);
    auto* orders = fake != nullptr ? reinterpret_cast<fake_files* (*)()>(dlsym(fake, "xio_fake_files")) : nullptr;
    if (orders == nullptr) throw std::runtime_error(dlerror());
    lib = new (orders()) fake_files;
    lib->major = hip() ? 0 : 1;
    data.write(stamped_data(k_bytes));
  }
  ~nvme_library() override {
    EXPECT_PAIRS((lib->wrong.load(), nullptr), (lib->drivers, 0), (lib->files, 0), (lib->buffers, 0));
    if (lib->wrong != nullptr) ADD_FAILURE() << lib->wrong;
  }
  static bool hip() { return GetParam() == by::hipfile; }
  rig::how forced() const { return {.mdts = 128 << 10, .by = GetParam(), .library = path}; }
  // Reads and writes at that place are right. How many calls they were to the library.
  int move(rig& r, std::uint64_t at, std::uint64_t bytes, std::uint64_t memory = 0) const {
    const int before = lib->reads + lib->writes;
    unsigned char* const buffer = r.heap() + memory;
    auto wanted = data.read();
    EXPECT_EQ(xio_read(r.ctx(), buffer, r.storage(), at, bytes), XIO_OK);
    EXPECT_EQ(std::memcmp(buffer, &wanted[at], bytes), 0);
    for (std::uint64_t i = 0; i < bytes; ++i) wanted[at + i] = buffer[i] = static_cast<unsigned char>(~buffer[i]);
    EXPECT_EQ(xio_write(r.ctx(), buffer, r.storage(), at, bytes), XIO_OK);
    EXPECT_EQ(data.read(), wanted);
    return lib->reads + lib->writes - before;
  }

  std::string path;
  fake_files* lib;
  scratch_file data;
};
INSTANTIATE_TEST_SUITE_P(of, nvme_library, testing::Values(by::hipfile, by::cufile),
                         [](const auto& p) { return p.param == by::hipfile ? "hipfile" : "cufile"; });

}  // namespace

TEST_P(nvme_library, moves_whole_pages_for_all_drives) {
  rig r(data.path, forced());
  EXPECT_TRUE(
      std::string(r.drive().backend()).starts_with(hip() ? "model hipFile 0.2.7, else " : "model cuFile 1.15.0"));
  {
    const rig second(data.path, forced());
    EXPECT_PAIRS((lib->drivers, 1), (lib->files, 2));
  }
  const struct {
    std::uint64_t at, bytes, memory;
    int calls;
  } cases[] = {{0, k_page, 0, 2},               // a command each way
               {k_page, 300 << 10, k_page, 6},  // three
               {3, k_page, 0, 0},
               {k_page, k_page, 512, 0},
               {0, k_page - 1, 0, 0},
               {k_bytes - 577, 577, 0, 0}};
  for (const auto& c : cases) EXPECT_EQ(move(r, c.at, c.bytes, c.memory), c.calls) << c.at << " " << c.bytes;
  EXPECT_EQ(xio_storage_sync(r.ctx(), r.storage()), XIO_OK);
}

// Memory that the host reaches by copies alone gets none of them where the library moves whole pages; the memory
// is registered once, and the library may refuse that.
TEST_P(nvme_library, copies_nothing_to_gpu_memory) {
  namespace w = wire::nvme;
  static int copies;
  const struct {
    w::opcode op;
    std::uint64_t lba;
    std::uint32_t wrong, dw12;  // moves that go wrong, more of the command
    int copied, calls;
  } cases[] = {{w::opcode::read, 8, 0, 0, 0, 1},
               {w::opcode::write, 8, 0, 0, 0, 1},
               {w::opcode::write, 16, 0, w::k_force_unit_access, 0, 1},
               {w::opcode::read, 9, 0, 0, 1, 0},
               {w::opcode::write, 9, 0, 0, 1, 0},
               {w::opcode::read, 8, 1, 0, 1, 1},
               {w::opcode::write, 8, 1, 0, 1, 1}};
  for (const int refused : {0, 5018}) {
    lib->buffer = refused;
    hand h({.direct = false,
            .copy = [](void* to, const void* from, std::size_t n) { ++copies, std::memcpy(to, from, n); },
            .library = {GetParam(), path}});
    h.make_queues();
    EXPECT_EQ(lib->buffers, refused == 0 ? 1 : 0);
    for (const auto& c : cases) {
      SCOPED_TRACE(&c - cases);
      copies = lib->reads = lib->writes = 0;
      lib->moves = static_cast<int>(c.wrong);
      lib->how = -5008;
      stamp(h.data(), c.lba, 4096, static_cast<std::uint64_t>(&c - cases) + 5);
      w::sqe command = w::make_io(c.op, 0, 1, h.data_bus(), 0, c.lba, 8);
      command.dw[12] |= c.dw12;
      EXPECT_EQ(h.io(command), 0u);
      EXPECT_PAIRS((copies, c.copied), (lib->reads + lib->writes, c.calls));
      EXPECT_EQ(std::memcmp(h.data(), h.file().read().data() + c.lba * 512, 4096), 0);
    }
  }
}

// The host does again all that fails in the library, and its status counts. After four in a row the library is left
// alone.
TEST_P(nvme_library, does_not_decide_a_status) {
  for (const long how : {-EIO, -ENOSPC, -EDQUOT, -EINVAL, -ENODEV, -EINTR, -5001, -5008, -5011, -5036, 4096, 0}) {
    SCOPED_TRACE(how);
    rig r(data.path, forced());
    testing::internal::CaptureStderr();
    for (const int wrong : {3, 0, 3, 100}) {
      lib->moves = wrong;
      lib->how = how;
      EXPECT_EQ(move(r, 2 * k_page, 4 * k_page) + move(r, 0, 2 * k_page), 4);
    }
    EXPECT_EQ(move(r, 0, k_page), 0);
    lib->moves = 0;
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("done through the host, as all from now on"), std::string::npos) << said;
  }
}

// Asked for by name it is an error, else the other way is taken; with a sentence each.
TEST_P(nvme_library, refused) {
  const struct {
    const char* library;  // null: the fake
    int open, file;
    unsigned newer;
    const char* sentence;
  } cases[] = {{"libnothing.so.0", 0, 0, 0, "libnothing.so.0: cannot open"},
               {"libm.so.6", 0, 0, 0, "libm.so.6 has no call"},
               {nullptr, 0, 0, 1, "is another version than"},
               {nullptr, 5001, 0, 0, "does not open its driver: its error 5001, 77 of the GPU's"},
               {nullptr, 0, 5027, 0, "its error 5027, 0 of the GPU's; use XIO_STORAGE_FILES_BY=io_uring"}};
  for (const auto& c : cases) {
    lib->open = c.open, lib->file = c.file, lib->major = (hip() ? 0 : 1) + c.newer;
    rig::how how = forced();
    if (c.library != nullptr) how.library = c.library;
    expect_words(refusal(XIO_ERR_UNSUPPORTED, [&] { rig(data.path, how); }), {c.sentence});
    how.by = by::automatic;
    how.gpus = GetParam();
    rig r(data.path, how);
    EXPECT_NE(std::string(r.drive().backend()).find(c.sentence), std::string::npos) << r.drive().backend();
    EXPECT_EQ(move(r, k_page, k_page), 0);
  }
}
