// SPDX-License-Identifier: MIT
// weights: a model's weights come from a safetensors file into the memory of all GPUs, and each byte is read once.
//
//   mpirun -np 2 examples/weights FILE   (or: xiorun -n 2 ...); the weights have to fit into XIO_HEAP_SIZE
//
// The lesson: a kernel reads a file as it lies on its file system, at any byte, and puts what it read to the peers in
// the same breath. PE p reads every n-th piece; the others get those from its memory and not from the file. Weights
// lie in memory as in the file, page for page, so that whole pages can come without a copy by the CPU.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "arguments.hpp"
#include "session.hpp"
#include "weights_header.hpp"

namespace {

constexpr uint64_t k_page = 4096, k_piece = 256 << 10;

struct load {
  xio_ctx_t ctx;
  xio_storage_t file;
  unsigned char* first;  // symmetric: where the file's byte 0 would be
  const piece* pieces;   // those that this PE reads
  int* status;
};

// A workgroup for each piece: reads it, and puts it to all others.
__global__ void read_and_put(load l) {
  const piece p = l.pieces[blockIdx.x];
  unsigned char* here = l.first + p.at;
  xio_status_t s = xio_read_wg(l.ctx, here, l.file, p.at, p.bytes);
  for (int i = 1; i < xio_n_pes(l.ctx) && s == XIO_OK; ++i)
    s = xio_put_wg(l.ctx, here, here, p.bytes, (xio_my_pe(l.ctx) + i) % xio_n_pes(l.ctx));
  keep(l.status, s);
  keep(l.status, xio_quiet(l.ctx));
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "weights FILE");
  const std::string name = given.text("FILE");
  given.end();
  // The host has the header from it, and compares the rest in the end.
  std::vector<unsigned char> file;
  std::vector<piece> tensors;
  try {
    std::ifstream in(name, std::ios::binary);
    file.assign(std::istreambuf_iterator<char>(in), {});
    tensors = read_header(file);
  } catch (const std::exception& e) {
    leave(2, "'%s' is no safetensors file: %s", name.c_str(), e.what());
  }
  session s;
  load l{};
  l.ctx = s.ctx;
  l.status = s.status;
  const uint64_t data = tensors[0].at, bytes = file.size() - data;
  void* memory = nullptr;
  check(xio_align(s.world, k_page, data % k_page + bytes + 1, &memory), "xio_align (a larger XIO_HEAP_SIZE)");
  l.first = static_cast<unsigned char*>(memory) + data % k_page - data;
  std::vector<piece> mine;
  uint64_t number = 0;
  for (uint64_t at = data, next; at < file.size(); at = next) {
    next = std::min<uint64_t>(file.size(), at / k_piece * k_piece + k_piece);
    if (number++ % static_cast<uint64_t>(s.n) == static_cast<uint64_t>(s.me)) mine.push_back({at, next - at});
  }
  auto* pieces = session::on_host<piece>(mine.size() + 1);
  std::copy(mine.begin(), mine.end(), pieces);
  l.pieces = pieces;
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = XIO_STORAGE_READ_ONLY;
  check(xio_storage_open(s.world, ("file:" + name).c_str(), &attr, &l.file), name.c_str());
  if (!mine.empty())
    hipLaunchKernelGGL(read_and_put, dim3(static_cast<unsigned>(mine.size())), dim3(64), 0, nullptr, l);
  s.wait("read_and_put");
  s.barrier();
  const auto got = session::read(l.first + data, bytes);
  uint64_t wrong = 0;
  for (size_t i = 0; i < bytes; ++i) wrong += got[i] != file[data + i];
  std::printf("PE %d: %zu tensors, %zu of %llu pieces read here, %llu bytes wrong\n", s.me, tensors.size() - 1,
              mine.size(), static_cast<unsigned long long>(number), static_cast<unsigned long long>(wrong));
  check(xio_storage_close(s.world, l.file), "xio_storage_close");
  (void)hipHostFree(pieces);
  return s.end(wrong);
}
