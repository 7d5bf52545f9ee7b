// SPDX-License-Identifier: MIT
// hipFile (FAKE_HIPFILE) or cuFile in software: each call checks what it is given by the rules of hipfile.h
// (ROCm/hipFile 0.2.0) and cufile.h (CUDA 13.0), and fails when a test says so.
#include "fake_file_library.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#if FAKE_HIPFILE
#define CALL(call) hipFile##call
#define CLOSE hipFileDriverClose
#else
#define CALL(call) cuFile##call
#define CLOSE cuFileDriverClose_v2
#endif

struct result {
  int code, of_driver;
};
struct description {
  int type;
  union {
    int fd;
    void* other;
  };
  const void* operations;
};

namespace {

fake_files orders;
std::mutex lock;
std::set<int*> files;  // handles: a file's descriptor each
std::map<const char*, std::size_t> buffers;

// Of the registered memory that has the address, or null.
const char* base_of(const char* at) {
  const auto next = buffers.upper_bound(at);
  if (next == buffers.begin()) return nullptr;
  const auto& [base, bytes] = *std::prev(next);
  return at < base + bytes ? base : nullptr;
}

bool rule(bool kept, const char* text) {
  const char* none = nullptr;
  if (!kept) orders.wrong.compare_exchange_strong(none, text);
  return kept;
}

// Whole pages: hipFile refuses others with HIPFILE_ALLOW_COMPAT_MODE=false, and cuFile may read, change and write.
template <class Call, class Memory>
ssize_t move(Call&& call, int* handle, Memory base, std::size_t bytes, off_t at, off_t inside) {
  {
    const std::lock_guard hold(lock);
    const auto address = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(inside);
    if (!rule(orders.drivers > 0, "a move without a driver") || !rule(files.count(handle) == 1, "no handle") ||
        !rule(base != nullptr && bytes != 0 && at >= 0 && inside >= 0, "arguments") ||
        !rule(base_of(base + inside) == nullptr || base_of(base + inside) == base, "memory not named by its base") ||
        !rule(base_of(base + inside + bytes - 1) == base_of(base + inside), "a move beyond registered memory") ||
        !rule((bytes | static_cast<std::uintptr_t>(at) | address) % 4096 == 0, "a move that is not of whole pages"))
      return -5022;
    if (orders.moves > 0) {
      --orders.moves;
      if (orders.how <= -5000) return orders.how;
      errno = static_cast<int>(-orders.how);
      if (orders.how < 0) return -1;
      bytes = static_cast<std::size_t>(orders.how);
    }
  }
  return bytes == 0 ? 0 : call(*handle, base + inside, bytes, at);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

fake_files* xio_fake_files() { return &orders; }

#if FAKE_HIPFILE
result hipFileGetVersion(unsigned* major, unsigned* minor, unsigned* patch) {
  *major = orders.major, *minor = 2, *patch = 7;
  return {};
}
#else
result cuFileGetVersion(int* version) {
  *version = static_cast<int>(orders.major) * 1000 + 150;
  return {};
}
#endif
result CALL(DriverOpen)() {
  if (orders.open == 0) ++orders.drivers;
  return {orders.open, orders.open != 0 ? 77 : 0};
}
result CLOSE() {
  rule(orders.drivers-- > 0 && files.empty() && buffers.empty(), "a driver closed twice, or under files or buffers");
  return {};
}
result CALL(HandleRegister)(void** handle, description* what) {
  const std::lock_guard hold(lock);
  rule(orders.drivers > 0 && what->type == 1 && fcntl(what->fd, F_GETFD) >= 0 && what->operations == nullptr,
       "no file");
  if (orders.file != 0) return {orders.file, 0};
  *handle = *files.insert(new int(what->fd)).first;
  ++orders.files;
  return {};
}
void CALL(HandleDeregister)(int* handle) {
  const std::lock_guard hold(lock);
  if (!rule(files.erase(handle) == 1 && fcntl(*handle, F_GETFD) >= 0, "no handle, or its file was closed before"))
    return;
  --orders.files;
  delete handle;
}
result CALL(BufRegister)(const char* base, std::size_t bytes, int flags) {
  const std::lock_guard hold(lock);
  rule(orders.drivers > 0 && base != nullptr && bytes != 0 && flags == 0, "no memory");
  rule(base_of(base) == nullptr && base_of(base + bytes - 1) == nullptr, "memory registered twice");
  if (orders.buffer != 0) return {orders.buffer, 0};
  buffers[base] = bytes;
  ++orders.buffers;
  return {};
}
result CALL(BufDeregister)(const char* base) {
  const std::lock_guard hold(lock);
  rule(buffers.erase(base) == 1, "memory that is not registered");
  --orders.buffers;
  return {};
}
ssize_t CALL(Read)(int* handle, char* base, std::size_t bytes, off_t at, off_t inside) {
  ++orders.reads;
  return move(pread, handle, base, bytes, at, inside);
}
ssize_t CALL(Write)(int* handle, const char* base, std::size_t bytes, off_t at, off_t inside) {
  ++orders.writes;
  return move(pwrite, handle, base, bytes, at, inside);
}

}  // extern "C"
