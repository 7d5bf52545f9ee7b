// SPDX-License-Identifier: MIT
// weights: a model's weights come from a safetensors file into the memory of all GPUs, and each byte is read once.
//
//   mpirun -np 2 examples/weights FILE   (or: xiorun -n 2 ...); the weights have to fit into XIO_HEAP_SIZE
//
// The lesson: a kernel reads a file as it lies on its file system, at any byte, and puts what it read to the peers in
// the same breath. PE p reads every n-th piece; the others get those from its memory and not from the file. Weights
// lie in memory as in the file, page for page, so that whole pages can come without a copy by the CPU.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "arguments.hpp"
#include "session.hpp"

namespace {

constexpr uint64_t k_page = 4096, k_piece = 256 << 10;
constexpr uint64_t k_most_header = 100'000'000;  // of the format (huggingface/safetensors, README.md)

struct piece {
  uint64_t at, bytes;  // in the file
};

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

struct tensors {
  uint64_t data = 0;          // where the weights begin in the file
  std::vector<piece> places;  // of each tensor in the file, in order, without gaps
};

uint64_t bytes_of(const std::string& type) {
  const size_t digit = type.find_first_of("0123456789");
  if (type == "BOOL" || type.rfind("F8_", 0) == 0) return 1;
  const std::string bits = digit == std::string::npos ? "" : type.substr(digit);
  return bits == "8" ? 1 : bits == "16" ? 2 : bits == "32" ? 4 : bits == "64" ? 8 : 0;
}

// Nothing in the header is believed: what it says has to fit the file, and itself.
tensors read_header(const std::vector<unsigned char>& file, const char* name) {
  uint64_t length = 0;
  for (int i = 7; i >= 0 && file.size() >= 8; --i) length = length << 8 | file[static_cast<size_t>(i)];
  if (file.size() < 8 || length > std::min<uint64_t>(k_most_header, file.size() - 8))
    leave(2, "'%s' is no safetensors file: a header of %llu bytes does not fit into it", name,
          static_cast<unsigned long long>(length));
  tensors t;
  t.data = 8 + length;
  uint64_t end = t.data;
  try {
    const auto header = nlohmann::json::parse(file.data() + 8, file.data() + 8 + length);
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__") continue;
      uint64_t bytes = bytes_of(value.at("dtype").get<std::string>());
      if (bytes == 0) leave(2, "'%s': '%s' has a type that is not known", name, key.c_str());
      for (const auto& n : value.at("shape"))
        if (!n.is_number_unsigned() || __builtin_mul_overflow(bytes, n.get<uint64_t>(), &bytes))
          leave(2, "'%s': '%s' has a shape that cannot be", name, key.c_str());
      const auto& from = value.at("data_offsets").at(0);
      const auto& to = value.at("data_offsets").at(1);
      if (!from.is_number_unsigned() || !to.is_number_unsigned() || to.get<uint64_t>() > file.size() - t.data ||
          from.get<uint64_t>() > to.get<uint64_t>() || to.get<uint64_t>() - from.get<uint64_t>() != bytes)
        leave(2, "'%s': '%s' lies beyond the file, or has not the bytes of its shape", name, key.c_str());
      t.places.push_back({t.data + from.get<uint64_t>(), bytes});
    }
  } catch (const nlohmann::json::exception& e) {
    leave(2, "'%s' is no safetensors file: %s", name, e.what());
  }
  std::sort(t.places.begin(), t.places.end(),
            [](const piece& a, const piece& b) { return a.at != b.at ? a.at < b.at : a.bytes < b.bytes; });
  for (const piece& p : t.places) {
    if (p.at != end) leave(2, "'%s': tensors overlap, or leave a gap, at byte %llu", name, (unsigned long long)end);
    end += p.bytes;
  }
  if (end != file.size()) leave(2, "'%s': bytes from %llu on are no tensor's", name, (unsigned long long)end);
  return t;
}

std::vector<unsigned char> contents(int fd, const char* name) {
  struct stat is {};
  if (fd < 0 || fstat(fd, &is) != 0 || !S_ISREG(is.st_mode)) leave(2, "'%s' is no file that can be read", name);
  std::vector<unsigned char> all(static_cast<size_t>(is.st_size));
  for (size_t at = 0; at < all.size();) {
    const ssize_t n = pread(fd, &all[at], all.size() - at, static_cast<off_t>(at));
    if (n <= 0) leave(1, "cannot read '%s': %s", name, n == 0 ? "it was made shorter" : std::strerror(errno));
    at += static_cast<size_t>(n);
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given(argc, argv, "weights FILE");
  const std::string name = given.text("FILE");
  given.end();
  // The host reads the header, and the rest only to compare in the end.
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  const std::vector<unsigned char> file = contents(fd, name.c_str());
  const tensors t = read_header(file, name.c_str());
  session s;
  load l{};
  l.ctx = s.ctx;
  l.status = s.status;
  const uint64_t inside = t.data % k_page;
  void* memory = nullptr;
  check(xio_align(s.world, k_page, inside + file.size() - t.data + 1, &memory), "xio_align (a larger XIO_HEAP_SIZE)");
  l.first = static_cast<unsigned char*>(memory) + inside - t.data;
  std::vector<piece> mine;
  uint64_t read_here = 0, number = 0;
  for (uint64_t at = t.data, next; at < file.size(); at = next) {
    next = std::min<uint64_t>(file.size(), at / k_piece * k_piece + k_piece);
    if (number++ % static_cast<uint64_t>(s.n) != static_cast<uint64_t>(s.me)) continue;
    mine.push_back({at, next - at});
    read_here += next - at;
  }
  auto* pieces = session::on_host<piece>(mine.size() + 1);
  std::copy(mine.begin(), mine.end(), pieces);
  l.pieces = pieces;
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = XIO_STORAGE_READ_ONLY;
  // By number: the same file, with any letters in its path.
  const std::string opened = "file:/proc/self/fd/" + std::to_string(fd);
  check(xio_storage_open(s.world, opened.c_str(), &attr, &l.file), name.c_str());
  if (!mine.empty())
    hipLaunchKernelGGL(read_and_put, dim3(static_cast<unsigned>(mine.size())), dim3(64), 0, nullptr, l);
  s.wait("read_and_put");
  s.barrier();
  const auto got = session::read(l.first + t.data, file.size() - t.data);
  uint64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) wrong += got[i] != file[t.data + i];
  std::printf("PE %d: %zu tensors of %zu bytes, %llu of them read here, %llu bytes wrong\n", s.me, t.places.size(),
              got.size(), static_cast<unsigned long long>(read_here), static_cast<unsigned long long>(wrong));
  check(xio_storage_close(s.world, l.file), "xio_storage_close");
  (void)hipHostFree(pieces);
  close(fd);
  return s.end(wrong);
}
