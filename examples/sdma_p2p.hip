// SPDX-License-Identifier: MIT
// sdma_p2p: one process, a copy engine's queue in the hands of a kernel, and a pattern that shows every lost byte.
//
//   examples/sdma_p2p [BYTES [DESTINATION]]        DESTINATION: a device number, same (default) or host
//
// It shows xio_sdma_connect, xio_sdma_queue_create, a kernel that posts its copies in pieces and signals behind them,
// and xio_sdma_queue_destroy. It needs no world and no other process.
#include <string>
#include <vector>

#include "arguments.hpp"
#include "xio/sdma.h"

namespace {

// A 32-bit Galois LFSR (taps 32, 31, 29, 1), a byte at a time: each depends on all that came before it.
class lfsr {
 public:
  explicit lfsr(uint32_t seed) : state_(seed) {}
  unsigned char next() {
    for (int i = 0; i < 8; ++i) state_ = (state_ >> 1) ^ ((state_ & 1) != 0 ? 0xd0000001u : 0);
    return static_cast<unsigned char>(state_);
  }

 private:
  uint32_t state_;
};

constexpr uint32_t k_seed = 0xACE1;
constexpr size_t k_piece = 64 << 10;

// Every lane posts the pieces that are its own; the last one to have counted needs not know who was before.
__global__ void send(xio_sdma_queue_t queue, unsigned char* dst, const unsigned char* src, size_t bytes,
                     uint64_t* arrived, int* status) {
  const size_t pieces = (bytes + k_piece - 1) / k_piece;
  for (size_t i = threadIdx.x; i < pieces; i += blockDim.x) {
    const size_t at = i * k_piece, n = bytes - at < k_piece ? bytes - at : k_piece;
    xio_sdma_put_signal(queue, dst + at, src + at, n, arrived, 1, XIO_SIGNAL_ADD);
  }
  if (threadIdx.x == 0) *status = xio_sdma_wait_signal(queue, arrived, pieces);
}

int destination(const std::string& where) {
  if (where == "same") return XIO_SDMA_SAME_DEVICE;
  if (where == "host") return XIO_SDMA_HOST;
  if (where.size() > 4 || where.find_first_not_of("0123456789") != std::string::npos)
    leave(2, "DESTINATION is '%s', but wants same, host or the number of a device", where.c_str());
  return std::atoi(where.c_str());
}

void* memory(bool on_host, size_t bytes) {
  void* p = nullptr;
  check(on_host ? hipHostMalloc(&p, bytes, 0) : hipMalloc(&p, bytes), "memory");
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "sdma_p2p [BYTES [same|host|DEVICE]]");
  const size_t bytes = given.number("BYTES", (4 << 20) + 7, 1, uint64_t{4} << 30);
  const std::string where = given.text("DESTINATION", "same");
  xio_sdma_link_attr_t attr = XIO_SDMA_LINK_ATTR_INIT;
  attr.dst_device = destination(where);
  given.end();
  const bool to_host = attr.dst_device == XIO_SDMA_HOST;
  xio_sdma_link_t* link = nullptr;
  xio_sdma_queue_t queue{};
  check(xio_sdma_connect(&attr, &link), "xio_sdma_connect");
  check(xio_sdma_queue_create(link, nullptr, &queue), "xio_sdma_queue_create");

  auto* src = static_cast<unsigned char*>(memory(false, bytes));
  if (attr.dst_device >= 0) check(hipSetDevice(attr.dst_device), "hipSetDevice");
  auto* dst = static_cast<unsigned char*>(memory(to_host, bytes));
  check(hipMemset(dst, 0, bytes), "hipMemset");
  check(hipSetDevice(attr.src_device), "hipSetDevice");
  auto* arrived = static_cast<uint64_t*>(memory(true, sizeof(uint64_t)));
  auto* status = static_cast<int*>(memory(true, sizeof(int)));
  *arrived = 0;
  check(xio_sdma_map(link, src, bytes), "xio_sdma_map");
  check(xio_sdma_map(link, dst, bytes), "xio_sdma_map");
  check(xio_sdma_map(link, arrived, sizeof(uint64_t)), "xio_sdma_map");

  std::vector<unsigned char> data(bytes);
  lfsr out(k_seed);
  for (auto& b : data) b = out.next();
  check(hipMemcpy(src, data.data(), bytes, hipMemcpyHostToDevice), "hipMemcpy");
  check(hipDeviceSynchronize(), "hipDeviceSynchronize");

  hipLaunchKernelGGL(send, dim3(1), dim3(64), 0, nullptr, queue, dst, src, bytes, arrived, status);
  check(hipDeviceSynchronize(), "the kernel");
  check(static_cast<xio_status_t>(*status), "the kernel");

  check(hipMemcpy(data.data(), dst, bytes, hipMemcpyDeviceToHost), "hipMemcpy");
  size_t wrong = 0;
  lfsr in(k_seed);
  for (const unsigned char b : data) wrong += b != in.next() ? 1 : 0;
  std::printf("%zu bytes to %s: %zu wrong\n", bytes, where.c_str(), wrong);

  check(xio_sdma_queue_destroy(link, queue), "xio_sdma_queue_destroy");
  check(xio_sdma_disconnect(link), "xio_sdma_disconnect");
  for (void* p : {static_cast<void*>(src), static_cast<void*>(to_host ? nullptr : dst)}) (void)hipFree(p);
  for (void* p : {static_cast<void*>(to_host ? dst : nullptr), static_cast<void*>(arrived), static_cast<void*>(status)})
    (void)hipHostFree(p);
  return ended(wrong == 0 ? 0 : 1);
}
