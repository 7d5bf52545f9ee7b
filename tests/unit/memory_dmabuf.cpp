// SPDX-License-Identifier: MIT
// dma-bufs: of the host platform's virtual memory where the kernel has /dev/udmabuf, and a sentence where not. Both
// ways say what they must.
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "local_world.hpp"
#include "says.hpp"

namespace {

using xio::test::says;

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

struct dmabuf : testing::Test {
  void SetUp() override {
    ASSERT_EQ(xio_mem_alloc(XIO_MEM_DEVICE_VMEM, k_bytes, nullptr, &p_), XIO_OK) << xio_last_error();
    for (std::size_t i = 0; i < data_.size(); ++i) data_[i] = static_cast<unsigned char>(i * 31 + (i >> 8));
    xio::gpu::copy(p_, data_.data(), data_.size());
  }
  void TearDown() override { EXPECT_EQ(xio_mem_free(p_), XIO_OK) << xio_last_error(); }
  unsigned char* at(std::size_t offset) { return static_cast<unsigned char*>(p_) + offset; }

  const std::size_t k_bytes = 16 * page();
  void* p_ = nullptr;
  std::vector<unsigned char> data_ = std::vector<unsigned char>(k_bytes);
  int fd_ = 77;
  std::uint64_t offset_ = 77;
};

#if defined(XIO_PLATFORM_HOST)
// The bytes are compared through a mapping of the dma-buf itself.
TEST_F(dmabuf, holds_the_bytes_at_the_offset_that_it_says) {
  if (access("/dev/udmabuf", R_OK | W_OK) != 0) {
    EXPECT_REFUSED(xio_mem_export_dmabuf(p_, k_bytes, 0, &fd_, &offset_), XIO_ERR_UNSUPPORTED, "/dev/udmabuf: ");
    EXPECT_PRED2(says, xio_last_error(), "load the kernel's udmabuf");
    EXPECT_PAIRS((fd_, -1), (offset_, 0u));
    return;
  }
  struct range {
    std::size_t first, bytes;
  };
  for (const auto& r : {range{0, k_bytes}, {0, 1}, {page() + 100, 50}, {3 * page() - 1, 2}, {k_bytes - 1, 1}}) {
    ASSERT_EQ(xio_mem_export_dmabuf(at(r.first), r.bytes, 0, &fd_, &offset_), XIO_OK) << xio_last_error();
    const off_t size = lseek(fd_, 0, SEEK_END);
    ASSERT_GE(size, static_cast<off_t>(offset_ + r.bytes));
    void* m = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    ASSERT_NE(m, MAP_FAILED);
    EXPECT_EQ(std::memcmp(static_cast<char*>(m) + offset_, data_.data() + r.first, r.bytes), 0);
    static_cast<unsigned char*>(m)[offset_] ^= 0xff;
    EXPECT_EQ(*at(r.first), static_cast<unsigned char>(data_[r.first] ^ 0xff)) << "it is the same memory";
    *at(r.first) = data_[r.first];
    EXPECT_PAIRS((munmap(m, static_cast<std::size_t>(size)), 0), (fcntl(fd_, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC),
                 (xio_mem_close_dmabuf(fd_), XIO_OK) << xio_last_error(), (fcntl(fd_, F_GETFD), -1));
  }
}

TEST_F(dmabuf, is_of_virtual_memory_only) {
  for (const auto kind : {XIO_MEM_HOST_PINNED, XIO_MEM_HOST_PLAIN, XIO_MEM_DEVICE_HIP, XIO_MEM_DEVICE_FINE_GRAINED}) {
    void* other = xio::test::take(kind, 1);
    EXPECT_REFUSED(xio_mem_export_dmabuf(other, 1, 0, &fd_, &offset_), XIO_ERR_UNSUPPORTED, "only DEVICE_VMEM");
    EXPECT_EQ(xio_mem_free(other), XIO_OK);
  }
  EXPECT_REFUSED(xio_mem_export_dmabuf(&fd_, 4, 0, &fd_, &offset_), XIO_ERR_UNSUPPORTED, "only DEVICE_VMEM");
  EXPECT_REFUSED(xio_mem_export_dmabuf(p_, 4, XIO_DMABUF_PCIE, &fd_, &offset_), XIO_ERR_UNSUPPORTED, "no BAR");
}

// udmabuf wants a file that cannot shrink and may be written (drivers/dma-buf/udmabuf.c).
TEST_F(dmabuf, memory_can_be_given_to_udmabuf) {
  int seals = -1;
  for (int fd = 3; fd < 200 && seals < 0; ++fd) {
    char target[64] = {};
    if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1) < 0) continue;
    if (says(target, "memfd:xio-vmem")) seals = fcntl(fd, F_GET_SEALS);
  }
  ASSERT_GE(seals, 0);
  EXPECT_PAIRS((seals & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW), (seals & F_SEAL_WRITE, 0));
}
#endif

#if !defined(XIO_PLATFORM_HOST)
// Drivers that export give the place in the page; the others a reason.
TEST_F(dmabuf, of_device_memory_or_the_reason_why_not) {
  void* plain = xio::test::take(XIO_MEM_DEVICE_HIP, k_bytes);
  for (unsigned char* base : {at(0), static_cast<unsigned char*>(plain)})
    for (const unsigned flags : {0u, unsigned{XIO_DMABUF_PCIE}}) {
      const xio_status_t status = xio_mem_export_dmabuf(base + page() + 100, 50, flags, &fd_, &offset_);
      if (status != XIO_OK) {
        EXPECT_EQ(status, XIO_ERR_UNSUPPORTED);
        EXPECT_PRED2(says, xio_last_error(), "a dma-buf of ");
        EXPECT_EQ(fd_, -1);
        std::cout << xio_last_error() << "\n";
        continue;
      }
      EXPECT_EQ(offset_ % page(), 100u);
      EXPECT_GE(lseek(fd_, 0, SEEK_END), static_cast<off_t>(offset_ + 50));
      EXPECT_EQ(xio_mem_close_dmabuf(fd_), XIO_OK) << xio_last_error();
      EXPECT_EQ(fcntl(fd_, F_GETFD), -1);
    }
  EXPECT_EQ(xio_mem_free(plain), XIO_OK);
  void* host = xio::test::take(XIO_MEM_HOST_MAPPED, 1);
  EXPECT_REFUSED(xio_mem_export_dmabuf(host, 1, 0, &fd_, &offset_), XIO_ERR_UNSUPPORTED, "it is host memory");
  EXPECT_EQ(xio_mem_free(host), XIO_OK);
}
#endif

TEST_F(dmabuf, wrong_arguments_are_named) {
  EXPECT_REFUSED(xio_mem_export_dmabuf(nullptr, 1, 0, &fd_, &offset_), XIO_ERR_ARG, "address is null");
  EXPECT_REFUSED(xio_mem_export_dmabuf(p_, 0, 0, &fd_, &offset_), XIO_ERR_ARG, "bytes is 0");
  EXPECT_REFUSED(xio_mem_export_dmabuf(p_, 1, 2, &fd_, &offset_), XIO_ERR_ARG, "flags 0x2");
  EXPECT_REFUSED(xio_mem_export_dmabuf(p_, 1, 0, nullptr, &offset_), XIO_ERR_ARG, "fd is null");
  EXPECT_REFUSED(xio_mem_export_dmabuf(p_, 1, 0, &fd_, nullptr), XIO_ERR_ARG, "offset is null");
  for (const std::size_t n : {k_bytes + 1, SIZE_MAX, SIZE_MAX - k_bytes})
    EXPECT_REFUSED(xio_mem_export_dmabuf(p_, n, 0, &fd_, &offset_), XIO_ERR_ARG, "leave the allocation");
  EXPECT_REFUSED(xio_mem_export_dmabuf(at(k_bytes - 1), 2, 0, &fd_, &offset_), XIO_ERR_ARG, "leave the allocation");
  EXPECT_EQ(fd_, -1);
}

TEST_F(dmabuf, only_dma_bufs_are_closed) {
  EXPECT_REFUSED(xio_mem_close_dmabuf(-1), XIO_ERR_ARG, "-1 is no open file descriptor");
  EXPECT_REFUSED(xio_mem_close_dmabuf(100000), XIO_ERR_ARG, "no open file descriptor");
  const int file = open("/dev/null", O_RDONLY);
  ASSERT_GE(file, 0);
  EXPECT_REFUSED(xio_mem_close_dmabuf(file), XIO_ERR_ARG, "'/dev/null', no dma-buf");
  EXPECT_NE(fcntl(file, F_GETFD), -1) << "it is still open";
  close(file);
  // Names may contain the word.
  for (const char* name : {"xio-dmabuf.log", "dmabuf:", "anon_inode:dmabuf"}) {
    const std::string path = testing::TempDir() + name;
    const int log = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(log, 0);
    unlink(path.c_str());
    EXPECT_REFUSED(xio_mem_close_dmabuf(log), XIO_ERR_ARG, "no dma-buf");
    EXPECT_NE(fcntl(log, F_GETFD), -1) << path << " is still open";
    close(log);
  }
}

}  // namespace
