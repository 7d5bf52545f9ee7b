// SPDX-License-Identifier: MIT
// Ordinary files that are none, or that go wrong while they are open: a status, one sentence, nothing else lost, and
// the ctx is used again. On a tmpfs, which can be full; by the host, and by a hipFile (fake_file_library.cpp).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "full_disk.hpp"
#include "nvme_rig.hpp"

using namespace xio;
using namespace xio::test;

namespace {

constexpr std::uint64_t k_bytes = 100001, k_hole = 65536;  // from there on nothing of the file is on the disk

struct scene {
  std::string path;
  int filler;  // a file that takes all room
  rig& r;
  bool by_library;  // then of whole pages

  // Returns the call's status, and its sentence where it throws one.
  xio_status_t grow(std::uint64_t bytes, std::string& said) const {
    try {
      EXPECT_GE(r.drive().extend(bytes).value_or(0), bytes);
      return XIO_OK;
    } catch (const error& e) {
      said += e.what();
      return e.status();
    }
  }
  void cut() const { EXPECT_EQ(truncate(path.c_str(), 50001), 0); }
  void fill() const { full_disk::fill_up(filler); }
  std::uint64_t place(std::uint64_t at) const { return by_library ? at / 4096 * 4096 : at; }
  std::uint64_t bytes() const { return by_library ? 8192 : 5000; }
  xio_status_t write(std::uint64_t at) const { return xio_write(r.ctx(), r.heap(), r.storage(), place(at), bytes()); }
  xio_status_t read(std::uint64_t at) const {
    return xio_read(r.ctx(), r.heap() + 8192, r.storage(), place(at), bytes());
  }
};

struct trouble {
  const char* what;
  std::uint32_t flags;
  xio_status_t (*go_wrong)(const scene& s, std::string& said);
  xio_status_t status;
  std::uint32_t code;  // of the drive, where it saw the command
  const char* sentence;
  std::uint64_t bytes = k_bytes;  // of the file afterwards
};

const trouble k_troubles[] = {
    {"cut, read", 0, [](const scene& s, std::string&) { return s.cut(), s.read(48000); }, XIO_ERR_STORAGE, 0x281,
     "Input/output error", 50001},
    {"cut, written", 0, [](const scene& s, std::string&) { return s.cut(), s.write(90000); }, XIO_ERR_STORAGE, 0x280,
     "was made shorter, from 100001 to 50001 bytes", 50001},
    {"cut, grown", 0, [](const scene& s, std::string& said) { return s.cut(), s.grow(200000, said); }, XIO_ERR_STATE, 0,
     "was made shorter, from 100001 to 50001 bytes, while it was open; open it again", 50001},
    {"removed", 0, [](const scene& s, std::string&) { return unlink(s.path.c_str()), s.write(3); }, XIO_OK, 0,
     "was removed while it is in use"},
    {"no room for a write", 0, [](const scene& s, std::string&) { return s.fill(), s.write(90000); }, XIO_ERR_STORAGE,
     0x280, "No space left on device"},
    {"no room to grow", 0, [](const scene& s, std::string& said) { return s.fill(), s.grow(200000, said); }, XIO_ERR_IO,
     0, "No space left on device; make room"},
    {"a full quota", 0,
     [](const scene& s, std::string&) {
       s.r.device().inject({.what = model::nvme::fault::kind::file, .opcode = std::uint8_t{1}, .error = EDQUOT});
       return s.write(3);
     },
     XIO_ERR_STORAGE, 0x280, "Disk quota exceeded"},
    {"read-only, grown", XIO_STORAGE_READ_ONLY,
     [](const scene& s, std::string& said) { return s.grow(k_bytes + 1, said); }, XIO_ERR_ARG, 0, "without READ_ONLY"},
    {"larger than files are", 0, [](const scene& s, std::string& said) { return s.grow(std::uint64_t{1} << 63, said); },
     XIO_ERR_IO, 0, "no files of that size"},
    {"grown to less", 0, [](const scene& s, std::string& said) { return s.grow(7, said); }, XIO_OK, 0, ""},
};

void go_through(const trouble& t, const std::string& place, bool by_library) {
  SCOPED_TRACE(testing::Message() << t.what << " by library: " << by_library);
  const std::string path = place + "/data";
  const int filler = open((place + "/filler").c_str(), O_CREAT | O_RDWR, 0600);
  const int data = open(path.c_str(), O_CREAT | O_RDWR, 0600);
  const auto kept = stamped_data(k_hole);
  ASSERT_EQ(pwrite(data, kept.data(), k_hole, 0), static_cast<ssize_t>(k_hole));
  ASSERT_EQ(ftruncate(data, k_bytes), 0);
  rig r(path, {.flags = t.flags,
               .by = by_library ? option::storage_files_by::hipfile : option::storage_files_by::automatic,
               .library = ".libs/libfake_hipfile.so"});
  const scene s{path, filler, r, by_library};
  std::memcpy(r.heap(), &kept[s.place(3)], s.bytes());
  ASSERT_EQ(s.read(3), XIO_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));  // the drive looks at the file once a millisecond
  testing::internal::CaptureStderr();
  std::string said;
  EXPECT_EQ(t.go_wrong(s, said), t.status);
  said += testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(t.sentence), std::string::npos) << said;
  EXPECT_TRUE(t.code == 0 || r.ring().state->vendor == t.code) << r.ring().state->vendor;
  EXPECT_PAIRS((r.quiet(), t.code == 0 ? XIO_OK : XIO_ERR_STORAGE), (r.quiet(), XIO_OK));
  // The same ctx has what is still there.
  std::memset(r.heap() + 8192, 0, s.bytes());
  EXPECT_EQ(s.read(3), XIO_OK);
  EXPECT_EQ(std::memcmp(r.heap() + 8192, &kept[s.place(3)], s.bytes()), 0);
  struct stat now {};
  EXPECT_EQ(fstat(data, &now), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(now.st_size), t.bytes);
  // And goes on where there is room again.
  EXPECT_EQ(ftruncate(filler, 0), 0);
  EXPECT_TRUE(t.bytes != k_bytes || t.flags != 0 || s.write(90000) == XIO_OK);
  close(filler);
  close(data);
  unlink(path.c_str());
}

void open_what_is_none(const std::string& place) {
  ASSERT_EQ(mkfifo((place + "/fifo").c_str(), 0600), 0);
  ASSERT_EQ(symlink("nothing", (place + "/dangling").c_str()), 0);
  const struct {
    std::string path;
    xio_status_t status;
    const char* sentence;
  } cases[] = {{place, XIO_ERR_IO, "neither a file nor a block device"},
               {place + "/fifo", XIO_ERR_IO, "neither a file nor a block device"},
               {place + "/dangling", XIO_ERR_IO, "No such file or directory; check the path"},
               {"/proc/self/status", XIO_ERR_ARG, "it is the kernel's"}};
  for (const auto& c : cases) {
    try {
      const rig r(c.path, {.flags = XIO_STORAGE_READ_ONLY});
      ADD_FAILURE() << c.path << " was opened";
    } catch (const error& e) {
      EXPECT_EQ(e.status(), c.status) << c.path;
      EXPECT_NE(std::string(e.what()).find(c.sentence), std::string::npos) << e.what();
    }
  }
  unlink((place + "/fifo").c_str());
  unlink((place + "/dangling").c_str());
}

// ramfs has no O_DIRECT.
void open_without_direct(const std::string& place) {
  ASSERT_EQ(mount("xio", place.c_str(), "ramfs", 0, ""), 0);
  testing::internal::CaptureStderr();
  rig r(place + "/data", {.flags = XIO_STORAGE_CREATE | XIO_STORAGE_DIRECT, .bytes = 8192});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("although XIO_STORAGE_DIRECT asks for O_DIRECT: Invalid argument"), std::string::npos) << said;
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 8192), XIO_OK);
}

}  // namespace

TEST(nvme_bad_files, have_a_status_and_a_sentence) {
  full_disk::run_in_a_child(
      [](const std::string& place) {
        open_what_is_none(place);
        for (const trouble& t : k_troubles)
          for (const bool by_library : {false, true}) go_through(t, place, by_library);
        open_without_direct(place);
      },
      "; nvme_faults and nvme_errors see most of these");
}
