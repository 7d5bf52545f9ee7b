// SPDX-License-Identifier: MIT
// Ordinary files that are none, or that go wrong while they are open: a status, one sentence, nothing else lost, and
// the ctx is used again. On a tmpfs, which can be full; by the host, and by a hipFile (fake_file_library.cpp).
#include <sys/socket.h>
#include <sys/un.h>

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
    {"another in its place", 0,
     [](const scene& s, std::string&) {
       EXPECT_EQ(rename((s.path + ".new").c_str(), s.path.c_str()), 0);
       return s.write(3);
     },
     XIO_OK, 0, "was removed while it is in use"},
    {"longer by another", 0,
     [](const scene& s, std::string& said) {
       EXPECT_EQ(truncate(s.path.c_str(), k_bytes + 7), 0);
       EXPECT_EQ(s.read(k_bytes + 4095), XIO_ERR_ARG);
       EXPECT_EQ(s.grow(0, said), XIO_OK);
       s.r.world().storages[0].bytes = s.r.drive().view().bytes;
       return xio_read(s.r.ctx(), s.r.heap(), s.r.storage(), k_bytes, 7);
     },
     XIO_OK, 0, "", k_bytes + 7},
    {"of 4 GiB and a byte", 0,
     [](const scene& s, std::string& said) {
       EXPECT_EQ(s.grow((std::uint64_t{4} << 30) + 1, said), XIO_OK);
       s.r.world().storages[0].bytes = s.r.drive().view().bytes;
       EXPECT_EQ(xio_read(s.r.ctx(), s.r.heap(), s.r.storage(), std::uint64_t{4} << 30, 1), XIO_OK);
       return xio_read(s.r.ctx(), s.r.heap(), s.r.storage(), std::uint64_t{4} << 30, 2);
     },
     XIO_ERR_ARG, 0, "", (std::uint64_t{4} << 30) + 1},
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
  close(creat((path + ".new").c_str(), 0600));
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
  unlink((path + ".new").c_str());
}

void open_what_is_none(const std::string& place) {
  const auto at = [&](const char* name) { return place + "/" + name; };
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  ASSERT_EQ(symlink("nothing", at("dangling").c_str()), 0);
  ASSERT_EQ(symlink("loop", at("loop").c_str()), 0);
  sockaddr_un name{AF_UNIX, {}};
  at("socket").copy(name.sun_path, sizeof name.sun_path - 1);
  const unique_fd listener(socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  ASSERT_GE(close(creat(at("secret").c_str(), 0)), 0);
  const struct {
    std::string path;
    xio_status_t status;
    const char* sentence;
    uid_t user = 0;
  } cases[] = {{place, XIO_ERR_IO, "neither a file nor a block device"},
               {at("fifo"), XIO_ERR_IO, "neither a file nor a block device"},
               {at("socket"), XIO_ERR_IO, "neither a file nor a block device"},
               {at("dangling"), XIO_ERR_IO, "No such file or directory; check the path"},
               {at("loop"), XIO_ERR_IO, "Too many levels of symbolic links; check the path"},
               {at("fifo/data"), XIO_ERR_IO, "Not a directory; check the path"},
               {at(std::string(300, 'x').c_str()), XIO_ERR_IO, "File name too long; check the path"},
               {at("secret"), XIO_ERR_IO, "for reading: Permission denied; change its permissions", 65534},
               {"/proc/self/status", XIO_ERR_ARG, "it is the kernel's"},
               {"/sys/kernel/mm/transparent_hugepage/enabled", XIO_ERR_ARG, "it is the kernel's"}};
  for (const auto& c : cases) {
    if (c.user != 0 && (geteuid() != 0 || seteuid(c.user) != 0)) continue;
    SCOPED_TRACE(c.path);
    expect_words(refusal(c.status, [&] { rig(c.path, {.flags = XIO_STORAGE_READ_ONLY}); }), {c.sentence});
    EXPECT_TRUE(c.user == 0 || seteuid(0) == 0);
  }
  for (const char* one : {"fifo", "dangling", "loop", "socket", "secret"}) unlink(at(one).c_str());
}

// Nothing of it can be read before it grows.
void open_an_empty_file(const std::string& place) {
  rig r(place + "/empty", {.flags = XIO_STORAGE_CREATE});
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 1), XIO_ERR_ARG);
  EXPECT_EQ(r.drive().extend(3), 3u);
  r.world().storages[0].bytes = 3;
  EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 3), XIO_OK);
  EXPECT_EQ(r.quiet(), XIO_OK);
  unlink((place + "/empty").c_str());
}

// The first write of a file that lies below copies it up: what is read before and behind it is the same file's.
void open_on_an_overlay(const std::string& place) {
  for (const char* one : {"/low", "/up", "/work", "/all"}) ASSERT_EQ(mkdir((place + one).c_str(), 0700), 0);
  const auto kept = stamped_data(8192);
  std::ofstream(place + "/low/data", std::ios::binary).write(reinterpret_cast<const char*>(kept.data()), 8192);
  const std::string how = "lowerdir=" + place + "/low,upperdir=" + place + "/up,workdir=" + place + "/work";
  if (mount("xio", (place + "/all").c_str(), "overlay", 0, how.c_str()) != 0) {
    std::printf("no overlay here: %s\n", std::strerror(errno));
    return;
  }
  {
    rig r(place + "/all/data", {.flags = XIO_STORAGE_DIRECT});
    EXPECT_EQ(xio_read(r.ctx(), r.heap(), r.storage(), 0, 8192), XIO_OK);
    EXPECT_EQ(std::memcmp(r.heap(), kept.data(), 8192), 0);
    r.heap()[5] ^= 0xff;
    EXPECT_EQ(xio_write(r.ctx(), r.heap(), r.storage(), 0, 4096), XIO_OK);
    EXPECT_EQ(xio_storage_sync(r.ctx(), r.storage()), XIO_OK);
    EXPECT_EQ(xio_read(r.ctx(), r.heap() + 8192, r.storage(), 0, 8192), XIO_OK);
    EXPECT_EQ(std::memcmp(r.heap(), r.heap() + 8192, 8192), 0);
  }
  EXPECT_EQ(umount((place + "/all").c_str()), 0);
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
        open_an_empty_file(place);
        for (const trouble& t : k_troubles)
          for (const bool by_library : {false, true}) go_through(t, place, by_library);
        open_on_an_overlay(place);
        open_without_direct(place);
      },
      "; nvme_faults and nvme_errors see most of these");
}
